"""`tocsin apply`."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import asdict
from typing import Annotated

import typer
from sqlalchemy import Connection

from tocsin.cli.database import record, run_on_database, whoami
from tocsin.cli.emergency_stops import describe_remedy
from tocsin.cli.output import AsJson, Columns, Wide, print_records, print_text
from tocsin.clock import SystemClock
from tocsin.delivery import count_missed_events, release_missed_events
from tocsin.errors import OperatorError
from tocsin.registry import Configuration, PlannedChange, load_configuration
from tocsin.settings import load_settings
from tocsin.stops import StopKind, load_stops
from tocsin.store import Database

_COLUMNS = Columns(("section", "name", "action"))
_ACTIONS = {"create": "create", "change": "change", "restore": "enable", "disable": "disable"}


def apply(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the changes without applying them.")
    ] = False,
    send_missed: Annotated[
        bool,
        typer.Option(
            "--send-missed",
            help="Also route events that an earlier version of Tocsin did not deliver because "
            "there were no destinations.",
        ),
    ] = False,
    as_json: AsJson = False,
    wide: Wide = False,
) -> None:
    """Apply plugins.toml to the database and list the changes.

    Creates and updates the destinations and schedules that the file defines. Disables the ones that
    you removed from the file. Deliveries to a disabled destination stay on hold. With SQLite,
    `tocsin serve` applies the file when it starts. With PostgreSQL, Tocsin does not route events
    until you have run this command once.
    """
    if dry_run and send_missed:
        raise OperatorError("--send-missed cannot be used with --dry-run")
    settings = load_settings()
    configuration = asyncio.run(
        load_configuration(settings.plugins_file, templates_dir=settings.templates_dir)
    )
    # Imported here, because the node imports every package
    from tocsin.node import plan_file

    async def work(database: Database) -> tuple[list[PlannedChange], list[str]]:
        steps = await database.write(plan_file if dry_run else _apply, configuration)
        notes = await database.read(_describe_stops)
        if send_missed:
            notes.append(f"missed events queued for routing: {await database.write(_send_missed)}")
        elif missed := await database.read(count_missed_events):
            found = "events that an earlier version did not deliver for lack of destinations"
            notes.append(f"{found}: {missed}; to route them, run `tocsin apply --send-missed`")
        return steps, notes

    steps, notes = run_on_database(settings, work)
    print_records([asdict(step) for step in steps], _COLUMNS, as_json=as_json, wide=wide)
    for note in notes:
        print_text(note, file=sys.stderr)


def _describe_stops(connection: Connection) -> list[str]:
    now = SystemClock().now()
    return [
        f"{kind}s.{name}: still disabled {stop.describe()}; {describe_remedy(kind, name)}"
        for kind in StopKind
        for name, stop in load_stops(connection, kind, now).items()
    ]


def _send_missed(connection: Connection) -> int:
    released = release_missed_events(connection)
    record(connection, SystemClock().now(), "events.send-missed", details={"events": released})
    return released


def _apply(connection: Connection, configuration: Configuration) -> list[PlannedChange]:
    from tocsin.node import apply_file
    from tocsin.schedules import load_schedules

    now = SystemClock().now()
    steps = apply_file(connection, configuration, whoami(), now)
    ids = {schedule.name: schedule.id for schedule in load_schedules(connection)}
    for step in steps:
        kind, name = step.section.removesuffix("s"), step.name
        target = f"{kind}:{ids[name] if kind == 'schedule' else name}"
        record(connection, now, f"{kind}.{_ACTIONS[step.action]}", target=target)
    return steps
