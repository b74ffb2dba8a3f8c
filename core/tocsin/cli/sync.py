"""`tocsin sync`: backfills."""

from __future__ import annotations

import asyncio
import sys
from datetime import timedelta
from typing import Annotated, Any

import typer
from sqlalchemy import Connection

from tocsin import incidents
from tocsin.cli.database import record, run_on_database, whoami
from tocsin.cli.options import parse_moment
from tocsin.cli.output import (
    AsJson,
    Columns,
    Wide,
    print_line,
    print_progress,
    print_record,
    print_records,
)
from tocsin.cli.providers import configured_providers
from tocsin.clock import SystemClock
from tocsin.errors import OperatorError
from tocsin.hookspecs import Capability
from tocsin.incidents import BackfillOrigin, BackfillState
from tocsin.model import Window
from tocsin.settings import Settings, load_settings
from tocsin.store import Database
from tocsin.validation import suggest_provider

app = typer.Typer(no_args_is_help=True, help="Backfill time ranges from providers.")

_COLUMNS = Columns(
    (
        "id",
        "provider",
        "origin",
        "state",
        "from",
        "to",
        "progress",
        "records",
        "new",
        "changed",
        "rejected",
        "reason",
    ),
    brief=("id", "provider", "state", "progress", "new", "reason"),
)
_POLL_INTERVAL = timedelta(seconds=1)
_HINT_AFTER = timedelta(seconds=30)
_NOT_STARTED = (
    "the backfill has not started yet; `tocsin serve` starts it when the regular sync has caught up"
)


@app.command()
def backfill(
    *,
    provider: Annotated[str, typer.Option(help="Name of the provider in plugins.toml.")],
    from_: Annotated[
        str,
        typer.Option("--from", help="Start time, such as 7d (7 days ago) or 2026-11-01T00:00:00Z."),
    ],
    to: Annotated[
        str | None, typer.Option(help="End time, in the same formats as --from. Default: now.")
    ] = None,
    alert: Annotated[
        bool,
        typer.Option(
            "--alert",
            help="Send alerts for new incidents. By default, a backfill does not send alerts.",
        ),
    ] = False,
    detach: Annotated[
        bool, typer.Option("--detach", help="Exit without waiting for the backfill to finish.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Backfill a time range from a provider.

    The service reads everything that changed in this time range, and the command waits until the
    backfill ends. To stop waiting, press Ctrl+C. The service continues the backfill, even after a
    restart.

    Exit status: 0 if the backfill completed, was cancelled or has not ended yet; 1 if it failed.
    """
    settings, now = load_settings(), SystemClock().now()
    start = parse_moment("--from", from_, now)
    end = now if to is None else parse_moment("--to", to, now)
    if start >= end:
        raise OperatorError(f"--from: found {from_!r}; use a time before --to")
    if end > now:
        raise OperatorError(f"--to: found {to!r}; use a time in the past")
    _require_backfill_support(settings, provider)
    window = Window(start, end)
    found = run_on_database(
        settings, lambda database: _run_backfill(database, provider, window, alert, detach)
    )
    print_record(found, _COLUMNS.every, as_json=as_json)
    if found["state"] == BackfillState.FAILED:
        raise typer.Exit(1)


@app.command()
def backfills(
    provider: Annotated[str | None, typer.Option(help="Only backfills of this provider.")] = None,
    limit: Annotated[
        int, typer.Option(min=1, max=100_000, help="Maximum number of backfills.")
    ] = 50,
    as_json: AsJson = False,
    wide: Wide = False,
) -> None:
    """List the newest backfills and their progress.

    Includes the backfills that Tocsin starts automatically to recover lost intervals.
    """
    page = run_on_database(
        load_settings(),
        lambda database: database.read(_list, limit, provider),
    )
    print_records(page.backfills, _COLUMNS, as_json=as_json, wide=wide)


@app.command()
def cancel(
    backfill_id: Annotated[str, typer.Argument(metavar="ID", help="ID of the backfill.")],
) -> None:
    """Cancel a backfill.

    Keeps the incidents that the backfill has already read.
    """
    run_on_database(load_settings(), lambda database: database.write(_cancel, backfill_id))


def _require_backfill_support(settings: Settings, name: str) -> None:
    known = {facts.name: facts for facts in configured_providers(settings)}
    if name not in known:
        raise OperatorError(f"--provider: found {name!r}; {suggest_provider(name, known)}")
    if Capability.BACKFILL not in known[name].capabilities:
        raise OperatorError(
            f"--provider: the plugin {known[name].plugin!r} does not support backfills"
        )


async def _run_backfill(
    database: Database, provider: str, window: Window, alert: bool, detach: bool
) -> dict[str, Any]:
    made = await database.write(_create, provider, window, alert)
    return made if detach else await _follow(database, made)


def _create(connection: Connection, provider: str, window: Window, alert: bool) -> dict[str, Any]:
    now, by = SystemClock().now(), whoami()
    made = incidents.create_backfill(
        connection, provider, window, alert=alert, origin=BackfillOrigin.OPERATOR, by=by, now=now
    )
    details = {name: made[name] for name in ("provider", "from", "to", "alert")}
    record(connection, now, "backfill.create", target=f"backfill:{made['id']}", details=details)
    return made


async def _follow(database: Database, made: dict[str, Any]) -> dict[str, Any]:
    """Return the backfill when it has ended, and show its progress until then."""
    found, waited = made, timedelta(0)
    while found["state"] == BackfillState.RUNNING:
        await asyncio.sleep(_POLL_INTERVAL.total_seconds())
        waited += _POLL_INTERVAL
        now_found = await database.read(incidents.load_backfill, made["id"])
        found = now_found or found
        if waited == _HINT_AFTER and not found["pages"]:
            print_line(found["reason"] or _NOT_STARTED, file=sys.stderr)
        print_progress(_describe_progress(found))
    print_progress(_describe_progress(found), end="\n")
    return found


def _describe_progress(found: dict[str, Any]) -> str:
    share = "" if found["progress"] is None else f"{found['progress']:.0%}, "
    return f"{share}records: {found['records']}, new: {found['new']}, changed: {found['changed']}"


def _list(connection: Connection, limit: int, provider: str | None) -> incidents.BackfillPage:
    return incidents.list_backfills(connection, limit=limit, provider=provider)


def _cancel(connection: Connection, backfill_id: str) -> None:
    now = SystemClock().now()
    if not incidents.end_backfill(connection, backfill_id, BackfillState.CANCELLED, now):
        if incidents.load_backfill(connection, backfill_id) is None:
            raise OperatorError(f"no backfill with ID {backfill_id!r}")
        return
    record(connection, now, "backfill.cancel", target=f"backfill:{backfill_id}", details={})
