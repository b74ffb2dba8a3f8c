"""Locations of databases: their URLs, and how they are shown."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from tocsin.errors import OperatorError
from tocsin.settings import Settings
from tocsin.store.database import Database
from tocsin.store.files import make_private_folder
from tocsin.store.server_address import (
    DATABASE_URL,
    DEFAULT_PORT,
    READ_URL,
    SESSION_URL,
    read_address,
    split_hosts,
)
from tocsin.store.sqlite import SqliteDatabase

URL_FORMS = "sqlite:///path or postgresql://user:password@host/name"


@dataclass(frozen=True, slots=True)
class DatabaseUrls:
    """URLs of the database that a node uses."""

    main: URL
    sessions: URL | None
    """For operations that need their own session, if `main` goes through a pooler."""
    reads: URL | None
    """For reads from a replica."""


def parse_url(text: str, variable: str = DATABASE_URL) -> URL:
    """Parse a database URL; raises OperatorError for unsupported ones."""
    try:
        url = make_url(split_hosts(text, variable))
    except (ArgumentError, ValueError):
        raise OperatorError(f"{variable}: not a valid URL; use {URL_FORMS}") from None
    backend = url.get_backend_name()
    if backend not in {"sqlite", "postgresql", "postgres"}:
        raise OperatorError(f"{variable}: found {backend!r}; use {URL_FORMS}")
    if backend != "sqlite":
        read_address(url, variable)
    elif url.database in {None, "", ":memory:"}:
        raise OperatorError(f"{variable}: a SQLite database requires a file; use {URL_FORMS}")
    return url


def parse_urls(settings: Settings) -> DatabaseUrls:
    """Return the URLs in the settings; raises OperatorError that lists all problems."""
    texts = {DATABASE_URL: settings.database}
    if sessions := settings.database_session_url.get_secret_value():
        texts[SESSION_URL] = sessions
    if reads := settings.database_read_url.get_secret_value():
        texts[READ_URL] = reads
    urls: dict[str, URL] = {}
    problems: list[str] = []
    for variable, text in texts.items():
        try:
            urls[variable] = parse_url(text, variable)
        except OperatorError as error:
            problems.append(str(error))
    has_sqlite = any(map(is_sqlite, urls.values()))
    if sessions and has_sqlite:
        problems.append(f"{SESSION_URL}: only PostgreSQL has sessions; remove it")
    if reads and has_sqlite:
        problems.append(f"{READ_URL}: only PostgreSQL has replicas; remove it")
    if problems:
        raise OperatorError("\n".join(problems))
    return DatabaseUrls(urls[DATABASE_URL], urls.get(SESSION_URL), urls.get(READ_URL))


def is_sqlite(url: URL) -> bool:
    """Return whether the URL is a SQLite URL."""
    return url.get_backend_name() == "sqlite"


def sqlite_file(url: URL) -> Path:
    """Return the file of a SQLite URL."""
    return Path(str(url.database))


def open_database(url: URL, sessions: URL | None = None) -> Database:
    """Open the database; a missing SQLite file is created.

    See PostgresDatabase for `sessions`.
    """
    if is_sqlite(url):
        path = sqlite_file(url)
        make_private_folder(path.parent)
        return SqliteDatabase(path)
    from tocsin.store.postgres import PostgresDatabase  # with much of SQLAlchemy

    return PostgresDatabase(url, sessions)


def open_replica(urls: DatabaseUrls) -> Database | None:
    """Open the replica, None without a read URL.

    If the database has a session URL, the read URL may also go through a pooler that shares
    sessions too.
    """
    if urls.reads is None:
        return None
    from tocsin.store.postgres import PostgresDatabase  # with much of SQLAlchemy

    return PostgresDatabase(urls.reads, urls.sessions, is_replica=True)


def open_session_database(settings: Settings) -> Database:
    """Open the database for a command, without going through a pooler that shares sessions."""
    urls = parse_urls(settings)
    return open_database(urls.sessions or urls.main)


def format_location(url: URL) -> str:
    """Return the location of a database, without its password."""
    return str(sqlite_file(url).resolve()) if is_sqlite(url) else url.render_as_string()


def identify_location(url: URL) -> str:
    """Return where a database is, alike however its URL is written, without credentials."""
    if is_sqlite(url):
        return str(sqlite_file(url).resolve())
    hosts = ",".join(f"{host}:{port}" for host, port in read_address(url).hosts)
    return f"postgresql://{hosts or f':{DEFAULT_PORT}'}/{url.database or ''}"
