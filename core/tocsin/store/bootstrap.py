"""Database setup: URL, connection, schema version."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import structlog
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import URL, Connection, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from tocsin.errors import OperatorError
from tocsin.store.database import Database
from tocsin.store.faults import describe_fault
from tocsin.store.files import make_private_folder
from tocsin.store.postgres import PostgresDatabase
from tocsin.store.session_limits import allow_long_transaction
from tocsin.store.sqlite import SqliteDatabase

DEFAULT_PORT = 5432
"""The port of PostgreSQL servers."""
_log = structlog.get_logger()
URL_FORMS = "sqlite:///path or postgresql://user:password@host/name"


def parse_url(text: str) -> URL:
    """Parse a database URL; raises OperatorError for unsupported ones."""
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise OperatorError(f"TOCSIN_DATABASE_URL: not a URL; give {URL_FORMS}") from None
    backend = url.get_backend_name()
    if backend not in {"sqlite", "postgresql", "postgres"}:
        raise OperatorError(f"TOCSIN_DATABASE_URL: found {backend!r}; give {URL_FORMS}")
    if backend == "sqlite" and url.database in {None, "", ":memory:"}:
        raise OperatorError(
            f"TOCSIN_DATABASE_URL: a SQLite database needs a file; give {URL_FORMS}"
        )
    return url


def is_sqlite(url: URL) -> bool:
    """Return whether the URL is a SQLite URL."""
    return url.get_backend_name() == "sqlite"


def sqlite_file(url: URL) -> Path:
    """Return the file of a SQLite URL."""
    return Path(str(url.database))


def open_database(url: URL) -> Database:
    """Open the database; a missing SQLite file is created."""
    if is_sqlite(url):
        path = sqlite_file(url)
        make_private_folder(path.parent)
        return SqliteDatabase(path)
    return PostgresDatabase(url)


def _configure_alembic() -> Config:
    config = Config()
    config.set_main_option("script_location", "tocsin.store:migrations")
    config.set_main_option("path_separator", "os")
    return config


@cache
def _list_revisions() -> tuple[str, ...]:
    """Return the schema revisions of this version of Tocsin, the newest first."""
    scripts = ScriptDirectory.from_config(_configure_alembic())
    return tuple(script.revision for script in scripts.walk_revisions())


def get_newest_revision() -> str:
    """Return the schema revision that this version of Tocsin requires."""
    return _list_revisions()[0]


def is_known_revision(revision: str) -> bool:
    """Return whether this version of Tocsin knows a schema revision."""
    return revision in _list_revisions()


def _load_current_revision(connection: Connection) -> str | None:
    """Return the schema revision, None for an empty database; OperatorError for an unknown one."""
    found = MigrationContext.configure(connection).get_current_revision()
    if found is not None and found not in _list_revisions():
        raise OperatorError(
            f"the database {_format_location(connection.engine.url)} has the schema {found}, "
            "which is unknown to this version of Tocsin; it supports schemas up to "
            f"{get_newest_revision()}. Run the newer version that created it, or restore a backup"
        )
    return found


def _format_location(url: URL) -> str:
    """Return the location of a database, without its password."""
    return str(sqlite_file(url).resolve()) if is_sqlite(url) else url.render_as_string()


def identify_location(url: URL) -> str:
    """Return where a database is, alike however its URL is written, without credentials."""
    if is_sqlite(url):
        return str(sqlite_file(url).resolve())
    return f"postgresql://{url.host or ''}:{url.port or DEFAULT_PORT}/{url.database or ''}"


def _upgrade(connection: Connection) -> None:
    if _load_current_revision(connection) is None:
        _log.warning(
            "database created; it is empty",
            database=_format_location(connection.engine.url),
            advice="if a database existed before, stop and check TOCSIN_DATABASE_URL and "
            "TOCSIN_DATA_DIR",
        )
    create_schema(connection)


def create_schema(connection: Connection, revision: str = "head") -> None:
    """Create the schema of a revision, or upgrade to it."""
    allow_long_transaction(connection)
    config = _configure_alembic()
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


async def upgrade(database: Database) -> str:
    """Upgrade the schema in one transaction, and return its revision.

    Raises OperatorError where the database is unavailable, or belongs to a newer version.
    """
    try:
        await database.write(_upgrade)
    except (SQLAlchemyError, OSError) as error:
        raise describe_fault(error) from error
    return get_newest_revision()


async def has_no_schema(database: Database) -> bool:
    """Return whether a database is empty, such as a file of which the log was deleted."""
    try:
        return await database.read(_load_current_revision) is None
    except (SQLAlchemyError, OSError) as error:
        raise describe_fault(error) from error


async def check_schema(database: Database) -> None:
    """Check that the schema is the required one; raises OperatorError where it is not."""
    try:
        found = await database.read(_load_current_revision)
    except (SQLAlchemyError, OSError) as error:
        raise describe_fault(error) from error
    if found != get_newest_revision():
        raise OperatorError(
            f"the database schema is at revision {found or 'none'}, this version of Tocsin "
            f"requires {get_newest_revision()}; run `tocsin db upgrade`"
        )
