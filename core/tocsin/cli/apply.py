"""`tocsin apply`."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer
from sqlalchemy import Connection

from tocsin.cli.existing import run_on_database
from tocsin.cli.local import record, whoami
from tocsin.cli.output import AsJson, print_records
from tocsin.clock import SystemClock
from tocsin.delivery import Step, Written, load_destinations, plan, written_in
from tocsin.delivery import apply as apply_written
from tocsin.registry import load_configuration
from tocsin.settings import load_settings

_ACTIONS = {
    "create": "destination.create",
    "change": "destination.change",
    "restore": "destination.enable",
    "disable": "destination.disable",
}


def apply(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be done, and do nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make the destinations in the database those of `plugins.toml`, and show what that took.

    On SQLite `serve` does so when it starts. What vanished from the file is disabled, and what
    waits for it is kept.
    """
    settings = load_settings()
    configuration = asyncio.run(
        load_configuration(settings.plugins_file, templates_dir=settings.templates_dir)
    )
    written = written_in(configuration)

    def work(connection: Connection) -> list[Step]:
        if dry_run:
            return plan(load_destinations(connection), written)
        return _apply(connection, written)

    steps = run_on_database(settings, lambda database: database.write(work))
    print_records([{"destination": it.name, "action": it.action} for it in steps], as_json=as_json)


def _apply(connection: Connection, written: list[Written]) -> list[Step]:
    now = SystemClock().now()
    steps = apply_written(connection, written, whoami(), now)
    for step in steps:
        record(connection, now, _ACTIONS[step.action], target=f"destination:{step.name}")
    return steps
