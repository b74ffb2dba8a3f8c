"""`tocsin providers read`: prints a provider's pages, for plugin authors."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import aclosing
from typing import Annotated, Any

import structlog
import typer

from tocsin.cli.output import AsJson, Columns, Wide, print_line, print_records
from tocsin.clock import SystemClock, isoformat
from tocsin.errors import OperatorError
from tocsin.hookspecs import Provider
from tocsin.logs import configure_logs
from tocsin.model import Page
from tocsin.observables import Environment
from tocsin.registry import (
    AbsentPlugin,
    PluginFactory,
    load_configuration,
    start_plugin,
    table_path,
)
from tocsin.settings import Settings, load_settings
from tocsin.validation import suggest_provider

_MOST_PAGES = 1000
_COLUMNS = Columns(("page", "stream", "kind", "id", "detail"))


def read_provider(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of the provider in plugins.toml.")
    ],
    stream: Annotated[
        str | None, typer.Option(help="Read only this stream. Default: all streams.")
    ] = None,
    pages: Annotated[
        int,
        typer.Option(
            min=1,
            max=_MOST_PAGES,
            help="Maximum number of pages of records to read from each stream.",
        ),
    ] = 10,
    as_json: AsJson = False,
    wide: Wide = False,
) -> None:
    """Read a provider from the beginning and print what it returns.

    Use this command while you develop a plugin. It reads the provider as if for the first time,
    and prints the provider's pages and rejected records. The command does not store anything, and
    does not change the position from which the service reads.

    Exit status: 0 if the read succeeded, 1 if the provider failed.
    """
    settings = load_settings()
    configure_logs(settings.log_format, settings.log_level)
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    records, error = asyncio.run(_read(settings, name, stream, pages))
    print_records(records, _COLUMNS, as_json=as_json, wide=wide)
    if error is not None:
        print_line(f"providers.{name}: {type(error).__name__}: {error}", file=sys.stderr)
        raise typer.Exit(1)


async def _read(
    settings: Settings, name: str, stream: str | None, most: int
) -> tuple[list[dict[str, Any]], Exception | None]:
    """Return the records to print, and the failure that ended the read."""
    configuration = await load_configuration(
        settings.plugins_file, templates_dir=settings.templates_dir, sections=("providers",)
    )
    found = {item.name: item for item in configuration.providers}
    for absent in configuration.absent:
        if absent.name == table_path("providers", name):
            raise OperatorError(f"{absent.name}: {absent.reason}")
    if name not in found:
        raise OperatorError(f"NAME: found {name!r}; {suggest_provider(name, found)}")
    environment = Environment(configuration.environment)
    maker = PluginFactory(SystemClock(), settings.public_url, environment)
    live = await start_plugin("providers", found[name], maker)
    if isinstance(live, AbsentPlugin):
        raise OperatorError(f"providers.{name}: {live.reason}")
    records = list[dict[str, Any]]()
    try:
        await _read_streams(live.plugin, stream, most, records)
    except OperatorError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever the plugin raises is what is asked for
        return records, error
    finally:
        await live.close()
    return records, None


async def _read_streams(
    provider: Provider, stream: str | None, most: int, records: list[dict[str, Any]]
) -> None:
    names = provider.streams()
    if stream is not None and stream not in names:
        raise OperatorError(f"--stream: found {stream!r}; use one of: {', '.join(names)}")
    until = provider.tools.clock.now()
    for each in names if stream is None else (stream,):
        number = shown = 0
        try:
            async with aclosing(provider.read(each, None, until)) as pages:
                async for page in pages:
                    number += 1
                    if not _is_empty(page):
                        shown += 1
                        described = _describe(page)
                        records += ({"page": number, "stream": each, **one} for one in described)
                    if shown == most or number == _MOST_PAGES:
                        break
        finally:
            if empty := number - shown:
                detail = f"pages without records: {empty}"
                records.append(
                    {"page": None, "stream": each, "kind": "empty", "id": None, "detail": detail}
                )


def _is_empty(page: Page) -> bool:
    """Return whether a page only reports that nothing changed."""
    is_lossy = any(interval.lost for interval in page.covered)
    return not (page.records or page.incidents or page.rejected or is_lossy)


def _describe(page: Page) -> Iterator[dict[str, Any]]:
    """Yield what a page contains."""
    for incident in page.incidents:
        parts = [incident.severity.value, incident.status.value]
        parts += [f"entities: {len(incident.entities)}", incident.title]
        yield {"kind": "incident", "id": incident.external_id, "detail": ", ".join(parts)}
    for rejected in page.rejected:
        yield {"kind": "rejected", "id": rejected.location, "detail": rejected.reason}
    for interval in page.covered:
        ends = (interval.start, interval.end)
        start, end = (str(end) if isinstance(end, int) else isoformat(end) for end in ends)
        kind = "lost" if interval.lost else "covered"
        detail = f"{start} to {end}" + (f": {interval.lost}" if interval.lost else "")
        yield {"kind": kind, "id": interval.source, "detail": detail}
    yield {"kind": "page", "id": None, "detail": f"records: {page.records}"}
