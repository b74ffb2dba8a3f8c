"""Locations of databases: their URLs, and how they are shown."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from tocsin.errors import OperatorError
from tocsin.store.database import Database
from tocsin.store.files import make_private_folder
from tocsin.store.sqlite import SqliteDatabase

DEFAULT_PORT = 5432
"""The port of PostgreSQL servers."""
URL_FORMS = "sqlite:///path or postgresql://user:password@host/name"


def parse_url(text: str) -> URL:
    """Parse a database URL; raises OperatorError for unsupported ones."""
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise OperatorError(f"TOCSIN_DATABASE_URL: not a URL; use {URL_FORMS}") from None
    backend = url.get_backend_name()
    if backend not in {"sqlite", "postgresql", "postgres"}:
        raise OperatorError(f"TOCSIN_DATABASE_URL: found {backend!r}; use {URL_FORMS}")
    if backend == "sqlite" and url.database in {None, "", ":memory:"}:
        raise OperatorError(
            f"TOCSIN_DATABASE_URL: a SQLite database requires a file; use {URL_FORMS}"
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
    from tocsin.store.postgres import PostgresDatabase  # with much of SQLAlchemy

    return PostgresDatabase(url)


def format_location(url: URL) -> str:
    """Return the location of a database, without its password."""
    return str(sqlite_file(url).resolve()) if is_sqlite(url) else url.render_as_string()


def identify_location(url: URL) -> str:
    """Return where a database is, alike however its URL is written, without credentials."""
    if is_sqlite(url):
        return str(sqlite_file(url).resolve())
    return f"postgresql://{url.host or ''}:{url.port or DEFAULT_PORT}/{url.database or ''}"
