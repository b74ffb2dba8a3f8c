"""Reading the ledger and the quarantine back, for people who want to see them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, Row, Select, Table, select

from tocsin.clock import isoformat
from tocsin.store.tables import EPOCH, coverage, quarantine

_SHOWN = 200


def list_coverage(connection: Connection, provider: str | None, limit: int) -> list[dict[str, Any]]:
    """Return the newest rows of the ledger, the newest first."""
    rows = connection.execute(_select_newest(coverage, provider, limit))
    return [_represent_interval(row) for row in rows]


def list_quarantine(
    connection: Connection, provider: str | None, limit: int
) -> list[dict[str, Any]]:
    """Return the newest records that were kept aside, the newest first."""
    rows = connection.execute(_select_newest(quarantine, provider, limit))
    return [_represent_record(row) for row in rows]


def _select_newest(table: Table, provider: str | None, limit: int) -> Select[Any]:
    query = select(table).order_by(table.c.id.desc()).limit(limit)
    return query if provider is None else query.where(table.c.provider == provider)


def _represent_interval(row: Row[Any]) -> dict[str, Any]:
    return {
        "provider": row.provider,
        "stream": row.stream,
        "source": row.source,
        "from": _represent_point(row.start, row.unit),
        "to": _represent_point(row.end, row.unit),
        "outcome": row.outcome,
        "reason": row.reason,
        "pages": row.pages,
        "records": row.records,
        "new": row.new,
        "changed": row.changed,
        "rejected": row.rejected,
        "finished_at": isoformat(row.finished_at),
        "past": row.past,
    }


def _represent_point(number: int, unit: str) -> str | int:
    return number if unit == "bytes" else isoformat(EPOCH + timedelta(microseconds=number))


def _represent_record(row: Row[Any]) -> dict[str, Any]:
    return {
        "provider": row.provider,
        "source": row.source,
        "location": row.location,
        "reason": row.reason,
        "content": row.content[:_SHOWN].decode("utf-8", "replace"),
        "created_at": isoformat(row.created_at),
    }
