"""Schema of the database: its versions, and upgrades from one to the next.

A change of the schema comes in two halves. The first adds what new nodes write, and what old nodes
ignore: they work beside new ones. The second, in a later version, removes what no node of the
version before uses. A database therefore has two numbers: its revision, and the oldest revision
whose nodes work with it. Each migration states the latter as `compatible_with`, with the reason in
its docstring; without it, only nodes of its own revision work with it.

Migrations change no rows of large tables, since that would take one long transaction. What has to
be filled in is filled in by nodes, in batches (see `incidents.documents.DocumentRebuild`).
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import structlog
from sqlalchemy import Column, Connection, Integer, MetaData, String, Table, select, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from tocsin.errors import OperatorError
from tocsin.store.database import Database
from tocsin.store.faults import describe_fault
from tocsin.store.locations import format_location
from tocsin.store.notifications import lock_exclusively
from tocsin.store.session_limits import SCHEMA_CHANGE_SECONDS, allow_long_transaction
from tocsin.store.statements import build_insert
from tocsin.store.tables import sequences

if TYPE_CHECKING:
    from alembic.config import Config

UNFINISHED_COPY = "unfinished_copy"
"""The table that marks a database as the target of an unfinished copy."""
_UNFINISHED_RESTORE = Table("unfinished_restore", MetaData(), Column("number", Integer))
"""The table that marks a restored database that may still contain erased values."""
_REVISION = Table("alembic_version", MetaData(), Column("version_num", String(32)))
_COMPATIBLE_WITH = "schema_compatible_with"
"""Entry of `sequences` with the oldest revision whose nodes work with the database."""
_LOCK_SECONDS = 5
"""Others wait behind a migration that waits for a table in use, so it waits no longer."""
_LOCK_TRIES = 12
_LOCK_NOT_AVAILABLE = "55P03"  # appendix A of PostgreSQL's manual
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Migration:
    """One step from a revision to the next."""

    revision: str
    summary: str
    compatible_with: str
    """The oldest revision whose nodes work with the schema afterwards."""


@dataclass(frozen=True, slots=True)
class SchemaState:
    """The two numbers of a database."""

    revision: str
    compatible_with: str


def configure_alembic() -> Config:
    """Return the settings of Alembic, which only migrations need: it takes 8 MB."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "tocsin.store:migrations")
    config.set_main_option("path_separator", "os")
    return config


@cache
def _list_migrations() -> tuple[Migration, ...]:
    """Return the migrations of this version of Tocsin, the oldest first."""
    from alembic.script import ScriptDirectory

    migrations: list[Migration] = []
    oldest = ""
    for script in reversed(list(ScriptDirectory.from_config(configure_alembic()).walk_revisions())):
        stated = getattr(script.module, "compatible_with", script.revision)
        oldest = max(oldest, stated)  # a later migration cannot take back what an earlier one broke
        migrations.append(Migration(script.revision, script.doc, oldest))
    return tuple(migrations)


@cache
def _list_revisions() -> Sequence[str]:
    """Return the schema revisions that this version of Tocsin knows, the oldest first."""
    folder = Path(__file__).parent / "migrations" / "versions"
    return sorted(path.name[1:5] for path in folder.glob("r[0-9]*.py"))


def get_newest_revision() -> str:
    """Return the schema revision of this version of Tocsin."""
    return _list_revisions()[-1]


def is_known_revision(revision: str) -> bool:
    """Return whether this version of Tocsin knows a schema revision."""
    return revision in _list_revisions()


def is_unfinished_copy(connection: Connection) -> bool:
    """Return whether a copy to this database was begun and is not complete."""
    return bool(connection.dialect.has_table(connection, UNFINISHED_COPY))


def begin_restore(connection: Connection) -> None:
    """Keep nodes and commands away from the database until `finish_restore`."""
    _UNFINISHED_RESTORE.create(connection)


def finish_restore(connection: Connection) -> None:
    """Make the restored database usable."""
    _UNFINISHED_RESTORE.drop(connection)


def _load_state(connection: Connection) -> SchemaState | None:
    """Return the state of the schema, None for an empty database.

    Raises OperatorError for a schema that this version cannot work with, and an unfinished copy or
    restore.
    """
    where = f"the database {format_location(connection.engine.url)}"
    if is_unfinished_copy(connection):
        raise OperatorError(
            f"{where} is an unfinished copy; run the same `tocsin db copy` again to finish it, or "
            "empty the database"
        )
    if connection.dialect.has_table(connection, _UNFINISHED_RESTORE.name):
        raise OperatorError(
            f"{where} is an unfinished restore and may still contain erased values; empty the "
            "database, and run `tocsin backup restore` again"
        )
    found = _load_revision(connection)
    if found is None:
        return None
    query = select(sequences.c.value).where(sequences.c.name == _COMPATIBLE_WITH)
    number = connection.execute(query).scalar()
    state = SchemaState(found, found if number is None else f"{number:04}")
    if not is_known_revision(found) and get_newest_revision() < state.compatible_with:
        raise OperatorError(
            f"{where} has schema revision {found}, which requires nodes with revision "
            f"{state.compatible_with} or later, but this version of Tocsin has revision "
            f"{get_newest_revision()}. Install the version that upgraded the database, or restore "
            "a backup from before the upgrade"
        )
    return state


def _load_revision(connection: Connection) -> str | None:
    """Return the revision of the schema, None for an empty database."""
    if not connection.dialect.has_table(connection, _REVISION.name):
        return None
    return connection.scalar(select(_REVISION.c.version_num))


def create_schema(connection: Connection, revision: str = "head") -> None:
    """Create the schema of a revision, or upgrade to it."""
    from alembic import command

    allow_long_transaction(connection)
    config = configure_alembic()
    config.attributes["connection"] = connection
    command.upgrade(config, revision)
    reached = _load_revision(connection)
    [oldest] = (m.compatible_with for m in _list_migrations() if m.revision == reached)
    values = {"name": _COMPATIBLE_WITH, "value": int(oldest)}
    statement = build_insert(connection, sequences).values(values)
    connection.execute(statement.on_conflict_do_update(index_elements=["name"], set_=values))


def _find_pending(state: SchemaState | None) -> list[Migration]:
    """Return the migrations that a database needs; none if its schema is newer."""
    if state is None:
        return list(_list_migrations())
    if state.revision >= get_newest_revision():
        return []
    return [migration for migration in _list_migrations() if migration.revision > state.revision]


def plan_upgrade(connection: Connection) -> list[Migration]:
    """Return the migrations that an upgrade would run; raises OperatorError as `upgrade` does."""
    return _find_pending(_load_state(connection))


async def upgrade(database: Database, copied: Path | None = None) -> Sequence[Migration]:
    """Upgrade the schema, each migration in a transaction of its own, and return them.

    Upgrades that run at the same time wait for each other. A file that is `copied` is copied
    beside itself first, unless it is empty. Raises OperatorError where the database is unavailable,
    or where this version cannot work with it.
    """
    done: list[Migration] = []
    try:
        if copied is not None and await database.read(_has_pending):
            await asyncio.to_thread(_copy_beside, copied)
        while (migrations := await _run_next(database)) is not None:
            done += migrations
    except (SQLAlchemyError, OSError) as error:
        raise describe_fault(error) from error
    return done


def _has_pending(connection: Connection) -> bool:
    """Return whether a database that is not empty has to be upgraded."""
    state = _load_state(connection)
    return state is not None and bool(_find_pending(state))


async def _run_next(database: Database) -> list[Migration] | None:
    """Run the next migration, or all of them on an empty database; None if there is none.

    A migration that does not get its locks is tried again, since others wait behind it meanwhile.
    """
    for tries in range(1, _LOCK_TRIES):
        try:
            return await database.write(_migrate) or None
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) != _LOCK_NOT_AVAILABLE:
                raise
            _log.info("schema upgrade waits for tables in use", tries=tries)
    return await database.write(_migrate) or None


def _migrate(connection: Connection) -> list[Migration]:
    """Run the next migration, or all of them on an empty database, and return them."""
    allow_long_transaction(connection)
    _limit_locks(connection, SCHEMA_CHANGE_SECONDS)
    lock_exclusively(connection, "schema")
    _limit_locks(connection, _LOCK_SECONDS)
    state = _load_state(connection)
    pending = _find_pending(state)
    if state is None:
        _log.warning(
            "database created; it is empty",
            database=format_location(connection.engine.url),
            advice="if you expected an existing database, stop the service and check "
            "TOCSIN_DATABASE_URL and TOCSIN_DATA_DIR",
        )
        create_schema(connection)
        return pending[-1:]
    for migration in pending[:1]:
        begun = monotonic()
        create_schema(connection, migration.revision)
        facts = {"revision": migration.revision, "summary": migration.summary}
        _log.info("schema upgraded", **facts, seconds=round(monotonic() - begun, 1))
    return pending[:1]


def _limit_locks(connection: Connection, seconds: int) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"SET LOCAL lock_timeout = '{seconds}s'"))


def _copy_beside(file: Path) -> None:
    """Copy a SQLite database beside it, in place of the copy of an earlier upgrade."""
    copy = file.with_name(f"{file.name}.before-upgrade")
    draft = copy.with_name(f"{copy.name}.partial")
    try:
        draft.unlink(missing_ok=True)
        draft.touch(mode=0o600)
        with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(draft)) as target:
            source.backup(target)
        draft.replace(copy)
    except (sqlite3.Error, OSError) as error:
        draft.unlink(missing_ok=True)
        raise OperatorError(
            f"{copy}: the database could not be copied before its upgrade ({error}); free up "
            f"disk space, or set TOCSIN_UPGRADE_COPY=false"
        ) from error
    _log.info("database copied before its upgrade", copy=str(copy.resolve()))


async def has_no_schema(database: Database) -> bool:
    """Return whether a database is empty, such as a file of which the log was deleted."""
    return await _read_state(database) is None


async def check_schema(database: Database, *, is_exact: bool = False) -> None:
    """Check that this version works with the schema; raises OperatorError if it does not.

    A newer schema is accepted if it is compatible, unless `is_exact`.
    """
    state = await _read_state(database)
    newest = get_newest_revision()
    if state is None or state.revision < newest:
        raise OperatorError(
            f"the database schema is at revision {state.revision if state else 'none'}, but this "
            f"version of Tocsin requires {newest}; run `tocsin db upgrade`"
        )
    if is_exact and state.revision != newest:
        raise OperatorError(
            f"the database schema is at revision {state.revision}, but this version of Tocsin "
            f"supports only revisions up to {newest} and would omit newer data; use a newer "
            "version"
        )


async def _read_state(database: Database) -> SchemaState | None:
    try:
        return await database.read(_load_state)
    except (SQLAlchemyError, OSError) as error:
        raise describe_fault(error) from error
