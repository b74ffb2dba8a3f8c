"""Common parts of API keys and API clients: scopes, callers, checksums, lists and last use."""

from __future__ import annotations

import secrets
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from threading import Lock
from typing import Any, NoReturn
from zlib import crc32

from sqlalchemy import Connection, Row, Table, bindparam, func, or_, select, update

from tocsin.clock import Clock
from tocsin.errors import TocsinError
from tocsin.loops import run_forever
from tocsin.store import Database
from tocsin.store.tables import api_clients, api_keys

IDENTIFIER_LENGTH = 16
SECRET_LENGTH = 43
"""Number of base62 characters for 256 bits."""
CHECKSUM_LENGTH = 6
IDENTIFIER = rf"[0-9A-Za-z]{{{IDENTIFIER_LENGTH}}}"
CHECKED_SECRET = rf"([0-9A-Za-z]{{{SECRET_LENGTH}}})[0-9A-Za-z]{{{CHECKSUM_LENGTH}}}"
"""Pattern of a secret and the checksum after it."""

USAGE_INTERVAL = timedelta(minutes=1)

_ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
_USED = {"key": api_keys.c.key_id, "client": api_clients.c.client_id}
_Uses = Mapping[tuple[str, str], datetime]


class Scope(StrEnum):
    """Permission of a credential; each endpoint requires one."""

    INVESTIGATIONS_READ = "investigations:read"
    INVESTIGATIONS_WRITE = "investigations:write"
    INCIDENTS_READ = "incidents:read"
    INCIDENTS_WRITE = "incidents:write"
    SEARCH_READ = "search:read"
    GRAPH_READ = "graph:read"


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated caller and its permissions."""

    id: str
    """The kind and the identifier, such as `key:0123456789ABCDEF` or `admin:ana`."""
    name: str
    scopes: tuple[str, ...] = ()
    is_admin: bool = False


class NoSuchRecordError(TocsinError):
    """No record with this ID exists."""


class NotActiveError(TocsinError):
    """The record's `status` does not allow the change."""

    def __init__(self, status: str) -> None:
        super().__init__(status)
        self.status = status


@dataclass(frozen=True, slots=True)
class RecordPage:
    """One page of a list, newest record first."""

    rows: Sequence[Row[Any]]
    total: int
    next: str | None
    """The `id` before which the next page starts; None on the last page."""


def search_text(*words: str | Iterable[str]) -> str:
    """Return the searchable text of a record: its words in lower case, one per line."""
    flat = (word if isinstance(word, str) else "\n".join(word) for word in words)
    return "\n".join(flat).casefold()


def list_records(
    connection: Connection, table: Table, *, search: str, limit: int, before: str | None
) -> RecordPage:
    """Return one page of the records that contain `search`; an empty text matches all."""
    matching = table.c.search.contains(search.casefold(), autoescape=True)
    total = connection.scalars(select(func.count()).select_from(table).where(matching)).one()
    page = select(table).where(matching).order_by(table.c.id.desc()).limit(limit + 1)
    if before is not None:
        page = page.where(table.c.id < before)
    rows = connection.execute(page).all()
    return RecordPage(rows[:limit], total, rows[limit - 1].id if len(rows) > limit else None)


def random_text(length: int) -> str:
    """Return random base62 characters."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(length))


def add_checksum(text: str) -> str:
    """Return the text with its checksum: the CRC-32 in base62.

    The checksum detects typos before any further work, and lets secret scanners avoid false
    positives.
    """
    return text + _checksum(text)


def has_checksum(text: str) -> bool:
    """Return whether a text ends with its checksum."""
    return text.endswith(_checksum(text[:-CHECKSUM_LENGTH]))


def _checksum(text: str) -> str:
    number, digits = crc32(text.encode()), ""
    for _ in range(CHECKSUM_LENGTH):
        number, digit = divmod(number, len(_ALPHABET))
        digits = _ALPHABET[digit] + digits
    return digits


class Usage:
    """Collects uses from any thread and writes the last use of each credential."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._uses: dict[tuple[str, str], datetime] = {}
        self._lock = Lock()

    def record(self, kind: str, identifier: str) -> None:
        """Record a use of a credential; `kind` is `key` or `client`."""
        with self._lock:
            self._uses[kind, identifier] = self._clock.now()

    async def flush(self) -> None:
        """Write the collected uses; if that fails, keep them for the next time."""
        with self._lock:
            uses, self._uses = self._uses, {}
        if not uses:
            return
        try:
            await self._database.write(_write_uses, uses)
        except BaseException:
            with self._lock:
                self._uses = {**uses, **self._uses}
            raise

    async def run(self) -> NoReturn:
        """Write the collected uses once a minute until cancelled."""
        what = "credential usage recorder"
        await run_forever(self.flush, self._clock, what, pause=USAGE_INTERVAL)


def _write_uses(connection: Connection, uses: _Uses) -> None:
    """Write in the order of IDs, so that two nodes cannot deadlock."""
    for kind, column in _USED.items():
        rows = [
            {"identifier": identifier, "used_at": used_at}
            for (its_kind, identifier), used_at in sorted(uses.items())
            if its_kind == kind
        ]
        if rows:
            used = column.table.c.last_used_at
            earlier = or_(used.is_(None), used < bindparam("used_at"))
            statement = update(column.table).where(column == bindparam("identifier"), earlier)
            connection.execute(statement.values(last_used_at=bindparam("used_at")), rows)
