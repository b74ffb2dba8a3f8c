"""Stored credentials: scopes, search text, pages and errors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Row, Table, func, select

from tocsin.errors import TocsinError


class Scope(StrEnum):
    """Permission of a credential; each endpoint requires one."""

    INVESTIGATIONS_READ = "investigations:read"
    INVESTIGATIONS_WRITE = "investigations:write"
    INCIDENTS_READ = "incidents:read"
    SEARCH_READ = "search:read"
    GRAPH_READ = "graph:read"


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
