"""`tocsin apply`."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Annotated

import typer
from sqlalchemy import Connection

from tocsin.cli.database import record, run_on_database, whoami
from tocsin.cli.output import AsJson, print_records
from tocsin.clock import SystemClock
from tocsin.registry import Configuration, PlannedChange, load_configuration
from tocsin.settings import load_settings

_ACTIONS = {"create": "create", "change": "change", "restore": "enable", "disable": "disable"}


def apply(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the changes without applying them.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Apply plugins.toml to the database and list the changes.

    Creates and changes destinations and schedules. Those that were removed from the file are
    disabled, and their queued deliveries are kept. With SQLite, `tocsin serve` applies the file
    when it starts.
    """
    settings = load_settings()
    configuration = asyncio.run(
        load_configuration(settings.plugins_file, templates_dir=settings.templates_dir)
    )
    # Imported here, because the node imports every package
    from tocsin.node import plan_file

    work = plan_file if dry_run else _apply
    steps = run_on_database(settings, lambda database: database.write(work, configuration))
    print_records([asdict(step) for step in steps], as_json=as_json)


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
