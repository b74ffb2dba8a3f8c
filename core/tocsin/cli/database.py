"""Database access of local commands, audit entries, and `tocsin db`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import asdict
from datetime import datetime
from getpass import getuser
from typing import Annotated, Any, TypeVar

import typer
from sqlalchemy import URL, Connection

from tocsin import audit
from tocsin.cli.output import (
    AsJson,
    Columns,
    Wide,
    print_json,
    print_progress,
    print_records,
    print_text,
)
from tocsin.clock import SystemClock
from tocsin.errors import OperatorError
from tocsin.logs import configure_logs
from tocsin.model import Json
from tocsin.settings import Settings, load_settings
from tocsin.store import (
    Database,
    HeadFile,
    Migration,
    check_schema,
    has_no_schema,
    hold_lock,
    identify_location,
    is_sqlite,
    open_database,
    open_session_database,
    parse_url,
    plan_upgrade,
    sqlite_file,
)
from tocsin.store import upgrade as upgrade_schema

T = TypeVar("T")
_MIGRATION = Columns(("revision", "summary", "compatible_with"))
_KEY_USE = Columns(
    ("key", "state", "since", "values", "tables"), ("key", "state", "since", "values")
)
_PROGRESS_WIDTH = 60


def run_on_database(settings: Settings, work: Callable[[Database], Awaitable[T]]) -> T:
    """Return the result of `work` on an existing database.

    Does not create a database. Raises OperatorError if the database is missing or has another
    schema. If the database existed before, the error describes its last known state.
    """
    url = parse_url(settings.database)
    file = HeadFile(settings.data_dir, identify_location(url))
    if is_sqlite(url) and not sqlite_file(url).exists():
        raise OperatorError(
            describe_past(file)
            or f"no database at {sqlite_file(url).resolve()}; start `tocsin serve` once, or set "
            "TOCSIN_DATA_DIR or TOCSIN_DATABASE_URL to the location of the database"
        )

    async def run() -> T:
        database = open_session_database(settings)
        try:
            await check_presence(database, file)
            await check_schema(database)
            return await work(database)
        finally:
            await database.close()

    return asyncio.run(run())


def describe_past(file: HeadFile) -> str | None:
    """Describe the last known state of a database that is now missing; None if none is known."""
    for stored in file.load([]):
        return (
            f"the database at {stored.location} is missing or empty, but its newest incident "
            f"at {stored.stored_at} was {stored.head.incident_number}; restore a backup, because "
            "`tocsin serve` would create an empty database and begin a new epoch"
        )
    return None


async def check_presence(database: Database, file: HeadFile) -> None:
    """Raise OperatorError if the database is empty but is known to have contained data."""
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
    audit.record_local(connection, now, whoami(), action, target=target, details=details)


app = typer.Typer(
    no_args_is_help=True, help="Upgrade and copy the database, and list its encryption keys."
)


@app.callback()
def _root() -> None:
    pass


@app.command()
def upgrade(
    plan: Annotated[
        bool, typer.Option("--plan", help="List the migrations without running them.")
    ] = False,
    as_json: AsJson = False,
    wide: Wide = False,
) -> None:
    """Create or upgrade the database schema, and list the migrations.

    With PostgreSQL, run this command before you start nodes of the new version. Nodes of a
    compatible version can keep running. You can safely run the command again, or on several
    machines at the same time. With SQLite, `tocsin serve` upgrades the schema when it starts.
    """
    settings = load_settings()
    configure_logs(settings.log_format, settings.log_level)  # on standard error
    migrations = asyncio.run(_upgrade(settings, plan=plan))
    if migrations or as_json:
        records = [asdict(migration) for migration in migrations]
        print_records(records, _MIGRATION, as_json=as_json, wide=wide)
    else:
        print_text("the schema is up to date; nothing to do", file=sys.stderr)


@app.command()
def copy(
    to: Annotated[
        str,
        typer.Option(
            "--to",
            help="URL of the database to copy to. This database must be empty or contain an "
            "interrupted copy.",
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Copy the database, such as from SQLite to PostgreSQL.

    Before you copy, stop all nodes that use either database. Verifies the row count and the
    checksum of each table in the copy. If the copy is interrupted, run the same command again to
    resume it. To keep the password out of the process list, do not put it in the URL. Instead, set
    PGPASSWORD or use ~/.pgpass.
    """
    settings = load_settings()
    configure_logs(settings.log_format, settings.log_level)
    source, target = parse_url(settings.database), parse_url(to)
    if identify_location(source) == identify_location(target):
        raise OperatorError(
            "--to: found the URL of the database to copy; use the URL of another database"
        )
    rows = run_on_database(settings, lambda database: _copy(database, source, target))
    print_progress("".ljust(_PROGRESS_WIDTH), end="\r")
    if as_json:
        print_json({"rows": rows})
    else:
        print_text(
            f"rows copied and verified: {rows}; to use the copy, set TOCSIN_DATABASE_URL to the "
            "URL of the copy"
        )


async def _copy(database: Database, source: URL, target: URL) -> int:
    from tocsin.transfer import DatabaseCopy

    with ExitStack() as stack:
        for url in filter(is_sqlite, (source, target)):
            stack.enter_context(hold_lock(sqlite_file(url)))
        copied = open_database(target)
        try:
            return await DatabaseCopy(
                source=database,
                target=copied,
                actor=whoami(),
                now=SystemClock().now(),
                progress=_show_progress,
            ).run()
        finally:
            await copied.close()


def _show_progress(table: str, rows: int, total: int) -> None:
    percent = 100 * rows // total if total else 100
    print_progress(f"{table}: {rows:,} of {total:,} rows ({percent}%)".ljust(_PROGRESS_WIDTH))


@app.command()
def keys(*, wide: Wide = False, as_json: AsJson = False) -> None:
    """List encryption key IDs and how many values need each key.

    The database no longer needs a key in the state `retired`. Remove the key from the configuration
    of all nodes, but keep a copy of it as long as you keep backups that need it.
    The output contains only the IDs of the keys.
    """
    settings = load_settings()
    found, nodes = run_on_database(settings, lambda database: _examine_keys(settings, database))
    print_records(found, _KEY_USE, as_json=as_json, wide=wide)
    for line in nodes:
        print_text(line, file=sys.stderr)


async def _examine_keys(
    settings: Settings, database: Database
) -> tuple[list[dict[str, Any]], list[str]]:
    from tocsin.credentials import find_nodes_without, list_key_use, open_proven_vault

    vault = await open_proven_vault(settings, database)
    newest = vault.key_ids[0]

    def examine(connection: Connection) -> tuple[list[dict[str, Any]], list[str]]:
        return list_key_use(connection, vault), [
            f"{name}: cannot read the key {newest}; configure it on this node"
            for name in find_nodes_without(connection, newest, SystemClock().now())
        ]

    return await database.read(examine)


async def _upgrade(settings: Settings, *, plan: bool) -> Sequence[Migration]:
    url = parse_url(settings.database)
    file = sqlite_file(url) if is_sqlite(url) else None
    if plan and file is not None and not file.exists():
        raise OperatorError(
            f"no database at {file.resolve()}; without --plan, this command creates it"
        )
    with nullcontext() if plan or file is None else hold_lock(file):
        database = open_session_database(settings)
        try:
            if plan:
                return await database.read(plan_upgrade)
            return await upgrade_schema(database, file if settings.upgrade_copy else None)
        finally:
            await database.close()
