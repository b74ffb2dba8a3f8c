"""Stored credentials: scopes, search text, pages and errors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Row, Table, func, select

from tocsin.errors import TocsinError


class Scope(StrEnum):
    """A permission that a credential carries; each endpoint asks for one."""

    INVESTIGATIONS_READ = "investigations:read"
    INVESTIGATIONS_WRITE = "investigations:write"
    INCIDENTS_READ = "incidents:read"
    SEARCH_READ = "search:read"
    GRAPH_READ = "graph:read"


class NoSuchRecordError(TocsinError):
    """There is no record of this identifier."""


class NotActiveError(TocsinError):
    """What was asked for is not for a record of this `status`."""

    def __init__(self, status: str) -> None:
        super().__init__(status)
        self.status = status


@dataclass(frozen=True, slots=True)
class RecordPage:
    """One page of a list, the newest record first."""

    rows: Sequence[Row[Any]]
    total: int
    next: str | None
    """The `id` to go on before; None on the last page."""


def search_text(*words: str | Iterable[str]) -> str:
    """Return what a record is searched in: its words in lower case, one a line."""
    flat = (word if isinstance(word, str) else "\n".join(word) for word in words)
    return "\n".join(flat).casefold()


def list_records(
    connection: Connection, table: Table, *, search: str, limit: int, before: str | None
) -> RecordPage:
    """Return one page of the records that hold `search`, all of them where it is empty."""
    matching = table.c.search.contains(search.casefold(), autoescape=True)
    total = connection.scalars(select(func.count()).select_from(table).where(matching)).one()
    page = select(table).where(matching).order_by(table.c.id.desc()).limit(limit + 1)
    if before is not None:
        page = page.where(table.c.id < before)
    rows = connection.execute(page).all()
    return RecordPage(rows[:limit], total, rows[limit - 1].id if len(rows) > limit else None)
