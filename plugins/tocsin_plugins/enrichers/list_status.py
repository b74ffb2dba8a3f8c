"""Status of the lists: as an API route, a console page, metrics and a command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import BaseModel, Field

from tocsin import ConsolePage, ConsoleSection, ExtensionRequest, Metric, OperatorError, Route
from tocsin_plugins.enrichers.lists import Lists, select_reader

commands = typer.Typer(no_args_is_help=True, help="Check entity lists.")


@commands.callback()
def _root() -> None:
    """Check entity lists."""


@commands.command("check-list")
def check_list(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="CSV or STIX 2.1 file.")],
) -> None:
    """Count the entries in a file before you configure it as a list."""
    try:
        entries = select_reader(str(path))(path.read_bytes())
    except (OSError, ValueError) as error:
        raise OperatorError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    expired = entries.expired(datetime.now(UTC))
    typer.echo(f"{path}: entries: {len(entries)}, expired: {expired}, unusable: {entries.skipped}")


class ListStatus(BaseModel):
    """A list, as this node has read it."""

    name: str = Field(description="Name of the list's table in `plugins.toml`.")
    meaning: str = Field(description="`allow`, `deny` or `watch`.")
    path: str
    entries: int
    expired: int = Field(description="Number of expired entries, which no longer match.")
    unusable: int = Field(description="Number of lines or indicators that Tocsin cannot use.")


class ListStatuses(BaseModel):
    """The lists of this node."""

    lists: list[ListStatus]


def describe_lists(objects: Mapping[str, Any]) -> list[ListStatus]:
    """Return the status of each list."""
    return [
        ListStatus(
            name=one.tools.name,
            meaning=one.settings.list,
            path=one.settings.path,
            entries=len(entries),
            expired=entries.expired(one.tools.clock.now()),
            unusable=entries.skipped,
        )
        for one in objects.values()
        if isinstance(one, Lists) and (entries := one.entries) is not None
    ]


async def get_lists(request: ExtensionRequest) -> ListStatuses:
    """Return the lists that this node has read, with their number of entries."""
    return ListStatuses(lists=describe_lists(request.objects))


async def show_lists(request: ExtensionRequest) -> Sequence[ConsoleSection]:
    """Return the lists as a table."""
    lists = describe_lists(request.objects)
    return [
        ConsoleSection(
            text="You configure these lists under [enrichers] in plugins.toml. The numbers show "
            "how many entries this node has read.",
            columns=("Name", "Meaning", "Entries", "Expired", "Unusable", "File"),
            rows=[
                (one.name, one.meaning, one.entries, one.expired, one.unusable, one.path)
                for one in lists
            ],
        )
    ]


def measure_lists(objects: Mapping[str, Any]) -> Sequence[Metric]:
    """Return the number of usable entries of each list."""
    return [
        Metric(
            name="list_entries",
            description="List entries that have not expired",
            value=one.entries - one.expired,
            labels={"list": one.name},
        )
        for one in describe_lists(objects)
    ]


ROUTES = (
    Route(
        path="/lists",
        access="admin",
        summary="List the entity lists",
        handler=get_lists,
        response=ListStatuses,
    ),
)
PAGES = (ConsolePage(path="/lists", title="Lists", view=show_lists),)
