"""Quarantine: records that could not be parsed, with the reasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, func, insert, select, update

from tocsin.clock import isoformat, isoformat_or_none
from tocsin.incidents.coverage.ledger import MAX_REASON, MAX_SOURCE, ROW_SPAN, represent_point
from tocsin.incidents.coverage.positions import StreamKey
from tocsin.incidents.coverage.record_times import find_record_time
from tocsin.model import Rejected
from tocsin.store import clean_text, count_matching
from tocsin.store.tables import coverage, quarantine

PUSH_STREAM = "push"
"""The stream in the ledger for everything that is pushed to a provider."""
WHOLE_PUSH = "whole request"
"""How the location of a push begins that was rejected as a whole."""
_MAX_CONTENT = 16_384
_EXCERPT = 200


@dataclass(frozen=True, slots=True)
class QuarantinePage:
    """One page of a list."""

    records: list[dict[str, Any]]
    total: int
    exact: bool
    """False where there are more than `total`."""
    next: int | None
    """The value of `before` for the next page, None on the last page."""


def quarantine_rejected(
    connection: Connection,
    key: StreamKey,
    rejected: Sequence[Rejected],
    now: datetime,
    *,
    further: int = 0,
) -> None:
    """Store records that cannot be read, and the number of `further` ones."""
    if further:
        reason = f"{further:,} further records were rejected and not kept"
        uncounted = Rejected(
            source=key.stream, location="further records", reason=reason, content=b""
        )
        rejected = (*rejected, uncounted)
    rows = [
        {
            "provider": key.provider,
            "stream": key.stream,
            "source": clean_text(record.source, MAX_SOURCE),
            "location": clean_text(record.location, MAX_REASON),
            "reason": clean_text(record.reason, MAX_REASON),
            "content": record.content[:_MAX_CONTENT],
            "created_at": now,
        }
        for record in rejected
    ]
    connection.execute(insert(quarantine), rows)


def list_quarantine(
    connection: Connection, provider: str | None, limit: int, *, before: int | None = None
) -> QuarantinePage:
    """Return a page of quarantined records, the newest first, with the start of their content.

    `before` continues an earlier page.
    """
    conditions = [] if provider is None else [quarantine.c.provider == provider]
    total = count_matching(connection, quarantine, conditions)
    page = select(quarantine).where(*conditions).order_by(quarantine.c.id.desc()).limit(limit + 1)
    if before is not None:
        page = page.where(quarantine.c.id < before)
    found = connection.execute(page).all()
    rows = found[:limit]
    return QuarantinePage(
        [_represent_record(row, row.content[:_EXCERPT]) for row in rows],
        total.count,
        total.exact,
        rows[-1].id if len(found) > limit else None,
    )


def load_quarantined(connection: Connection, id_: int) -> dict[str, Any] | None:
    """Return a record with all stored content, its time, and why it cannot be retried if so.

    The time range is that of the read that rejected it, null where the source is not read by time.
    None if there is no such record.
    """
    row = load_quarantined_row(connection, id_)
    if row is None:
        return None
    start, end = _find_range(connection, row)
    return {
        **_represent_record(row, row.content),
        "from": start,
        "to": end,
        "recorded_at": isoformat_or_none(find_record_time(row.content, row.created_at)),
        "retry_obstacle": find_retry_obstacle(row),
    }


def load_quarantined_row(connection: Connection, id_: int) -> Row[Any] | None:
    """Return the row of a record, None if there is none."""
    return connection.execute(select(quarantine).where(quarantine.c.id == id_)).one_or_none()


def find_retry_obstacle(record: Row[Any]) -> str | None:
    """Return why the content of a record cannot be mapped again, None if it can be."""
    if record.retried_at is not None:
        return "The record was already retried."
    if record.stream != PUSH_STREAM:
        return "Tocsin read the record from the SIEM, so only a backfill can read it again."
    if not record.content:
        return "Tocsin did not store the content of the record."
    if not record.location.startswith(WHOLE_PUSH):
        return "Tocsin stored only a part of the push, not the request that the sender sent."
    if len(record.content) >= _MAX_CONTENT:
        return "The request was larger than the 16 KiB that Tocsin stores of it."
    return None


def mark_retried(connection: Connection, id_: int, by: str, now: datetime) -> bool:
    """Mark a record as retried; return False if it is gone or was retried before."""
    marked = connection.execute(
        update(quarantine)
        .where(quarantine.c.id == id_, quarantine.c.retried_at.is_(None))
        .values(retried_at=now, retried_by=by)
    )
    return marked.rowcount == 1


def _find_range(connection: Connection, record: Row[Any]) -> tuple[Any, Any]:
    """Return the time range of the ledger rows that count the record as rejected."""
    start, end = connection.execute(
        select(func.min(coverage.c.start), func.max(coverage.c.end)).where(
            coverage.c.provider == record.provider,
            coverage.c.stream == record.stream,
            coverage.c.unit == "time",
            coverage.c.start < coverage.c.end,
            coverage.c.rejected > 0,
            coverage.c.started_at <= record.created_at,
            coverage.c.finished_at.between(record.created_at, record.created_at + ROW_SPAN),
        )
    ).one()
    if start is None:
        return None, None
    return represent_point(start, "time"), represent_point(end, "time")


def _represent_record(row: Row[Any], content: bytes) -> dict[str, Any]:
    return {
        "id": row.id,
        "provider": row.provider,
        "stream": row.stream,
        "source": row.source,
        "location": row.location,
        "reason": row.reason,
        "content": content.decode("utf-8", "replace"),
        "created_at": isoformat(row.created_at),
        "retried_at": isoformat_or_none(row.retried_at),
        "retried_by": row.retried_by,
    }
