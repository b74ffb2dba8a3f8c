"""Database access of local commands, audit entries, and `tocsin db`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from getpass import getuser
from typing import TypeVar

import typer
from sqlalchemy import URL, Connection

from tocsin import audit
from tocsin.cli.output import print_text
from tocsin.errors import OperatorError
from tocsin.logs import configure_logs
from tocsin.model import Json
from tocsin.settings import Settings, load_settings
from tocsin.store import (
    Database,
    HeadFile,
    check_schema,
    has_no_schema,
    identify_location,
    is_sqlite,
    open_database,
    parse_url,
    sqlite_file,
)
from tocsin.store import upgrade as upgrade_schema

T = TypeVar("T")


def run_on_database(settings: Settings, work: Callable[[Database], Awaitable[T]]) -> T:
    """Return the result of `work` on an existing database.

    Only `serve` creates one. Raises OperatorError if it is missing or has another schema, and says
    what it held before.
    """
    url = parse_url(settings.database)
    file = HeadFile(settings.data_dir, identify_location(url))
    if is_sqlite(url) and not sqlite_file(url).exists():
        raise OperatorError(
            describe_past(file)
            or f"no database at {sqlite_file(url).resolve()}; start `tocsin serve` once, or set "
            "TOCSIN_DATA_DIR or TOCSIN_DATABASE_URL to its location"
        )

    async def run() -> T:
        database = open_database(url)
        try:
            await check_presence(database, file)
            await check_schema(database)
            return await work(database)
        finally:
            await database.close()

    return asyncio.run(run())


def describe_past(file: HeadFile) -> str | None:
    """Return what was known of a database that is missing or empty now; None if nothing was."""
    for stored in file.load([]):
        return (
            f"the database at {stored.location} is missing or empty; until {stored.stored_at}, it "
            f"had reached incident {stored.head.incident_number}. Restore a backup; `tocsin serve` "
            "would create an empty one and begin a new epoch"
        )
    return None


async def check_presence(database: Database, file: HeadFile) -> None:
    """Raise OperatorError where a database is empty that was known to hold something."""
    if (past := describe_past(file)) is not None and await has_no_schema(database):
        raise OperatorError(past)


def whoami() -> str:
    """Return the actor of local commands in audit entries and records."""
    return f"local:{getuser()}"


def record(
    connection: Connection,
    now: datetime,
    action: str,
    *,
    target: str | None = None,
    details: Mapping[str, Json] | None = None,
) -> None:
    """Store an audit entry in the transaction of the change."""
    entry = audit.AuditRecord(
        at=now,
        actor=whoami(),
        action=action,
        target=target,
        address="local",
        request_id="",
        details=details or {},
    )
    audit.record(connection, entry)


app = typer.Typer(no_args_is_help=True, help="Manage the database schema.")


@app.callback()
def _root() -> None:
    pass


@app.command()
def upgrade() -> None:
    """Create or upgrade the database schema.

    With SQLite, `tocsin serve` upgrades the schema when it starts.
    """
    settings = load_settings()
    configure_logs(settings.log_format, settings.log_level)  # on standard error
    print_text(asyncio.run(_upgrade(parse_url(settings.database))))


async def _upgrade(url: URL) -> str:
    database = open_database(url)
    try:
        return await upgrade_schema(database)
    finally:
        await database.close()
