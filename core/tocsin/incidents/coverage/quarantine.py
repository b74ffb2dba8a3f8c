"""Quarantine: records that could not be parsed, with the reasons."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, func, insert, or_, select, update

from tocsin.clock import isoformat, isoformat_or_none
from tocsin.incidents.coverage.ledger import MAX_REASON, MAX_SOURCE, ROW_SPAN, represent_point
from tocsin.incidents.coverage.positions import StreamKey
from tocsin.incidents.coverage.record_times import find_record_time
from tocsin.model import MAX_QUARANTINED, Received, Rejected
from tocsin.store import Redactor, clean_text, count_matching
from tocsin.store.tables import coverage, quarantine

PUSH_STREAM = "push"
"""The stream in the ledger for everything that is pushed to a provider."""
WHOLE_PUSH = "whole request"
"""How the location of a push begins that was rejected as a whole."""
_TOO_LARGE = b"\0"
"""Takes the place of a request that is too large, also where the others are redacted."""
_EXCERPT = 200
_holder = quarantine.alias("holder")
_RECORDS = quarantine.outerjoin(_holder, _holder.c.id == quarantine.c.request_id)
_LENGTHS = (
    func.length(quarantine.c.content).label("content_length"),
    func.coalesce(func.length(quarantine.c.request), func.length(_holder.c.request)).label(
        "request_length"
    ),
)
_LISTED: list[ColumnElement[Any]] = [
    *(column for column in quarantine.c if column.name not in ("content", "request")),
    # SQLite returns null for the start of an empty value
    func.coalesce(func.substr(quarantine.c.content, 1, _EXCERPT), quarantine.c.content).label(
        "content"
    ),
    *_LENGTHS,
]
"""The columns of a list, without what can be long."""
_WHOLE: list[ColumnElement[Any]] = [
    *(column for column in quarantine.c if column.name != "request"),
    func.coalesce(quarantine.c.request, _holder.c.request).label("request"),
    *_LENGTHS,
]
"""The columns of a record, with the request where another record of the push contains it."""
_ADJACENT = 1_000
"""How far apart the IDs of records of one request can be, as other pushes get IDs meanwhile."""


@dataclass(frozen=True, slots=True)
class QuarantinePage:
    """One page of a list."""

    records: list[dict[str, Any]]
    total: int
    exact: bool
    """False where there are more than `total`."""
    next: int | None
    """The value of `before` for the next page, None on the last page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PushedPart(Received):
    """Part of a push, with what a retry of its rejected records needs."""

    request: bytes | None = None
    """The whole request, `_TOO_LARGE` instead of one that is too large, None if it is not stored.

    `redact_part` does not redact it, because this takes long, and most parts have no rejected
    records.
    """
    received_at: datetime | None = None


def attach_push(received: Received, request: bytes, received_at: datetime) -> PushedPart:
    """Return a part of a push with the request and the time of the push."""
    rejected = (
        one if one.request is None else replace(one, request=_limit_request(one.request))
        for one in received.rejected
    )
    return PushedPart(
        incidents=received.incidents,
        rejected=tuple(rejected),
        further_rejected=received.further_rejected,
        covered=received.covered,
        records=received.records,
        incomplete=received.incomplete,
        request=_limit_request(request),
        received_at=received_at,
    )


def reject_push(
    request: bytes, reason: str, received_at: datetime, location: str = WHOLE_PUSH
) -> PushedPart:
    """Return a push that is rejected as a whole."""
    # the content is the request, unless that is too large
    marked = _TOO_LARGE if len(request) >= MAX_QUARANTINED else b""
    rejected = Rejected(
        source=PUSH_STREAM, location=location, reason=reason, content=request, request=marked
    )
    return PushedPart(rejected=(rejected,), received_at=received_at)


def _limit_request(request: bytes) -> bytes:
    """Return a request that can be stored; before any redaction, which changes the length."""
    return request if len(request) < MAX_QUARANTINED else _TOO_LARGE


def redact_part(redactor: Redactor, received: Received) -> Received:
    """Return a part with all erased values replaced, but for those in the request of its push."""
    if not isinstance(received, PushedPart):
        return redactor.redact(received)
    redacted = redactor.redact(replace(received, request=None))
    return replace(redacted, request=received.request)


def quarantine_rejected(
    connection: Connection,
    key: StreamKey,
    batch: Iterable[Received],
    now: datetime,
    *,
    redactor: Redactor | None = None,
) -> None:
    """Store the records that cannot be read, and the number of further ones.

    Of the records that need the whole request of a push, the first contains it.
    """
    holders: dict[tuple[bytes, datetime | None], int] = {}
    rows = []
    for received in batch:
        push = received if isinstance(received, PushedPart) else PushedPart()
        for record in _list_rejected(key, received):
            row = {
                "provider": key.provider,
                "stream": key.stream,
                "source": clean_text(record.source, MAX_SOURCE),
                "location": clean_text(record.location, MAX_REASON),
                "reason": clean_text(record.reason, MAX_REASON),
                "content": record.content[:MAX_QUARANTINED],
                "created_at": now,
                "request": _store_request(record.request),
                "received_at": push.received_at,
                "request_id": None,
            }
            rows.append(row)
            if record.request is not None or push.request is None:
                continue
            place = push.request, push.received_at
            if (holder := holders.get(place)) is not None:
                row["request_id"] = holder
                continue
            request = redactor.redact(push.request) if redactor else push.request
            adding = insert(quarantine).values(rows.pop() | {"request": _store_request(request)})
            holders[place] = connection.execute(adding.returning(quarantine.c.id)).scalar_one()
    if rows:
        connection.execute(insert(quarantine), rows)


def _list_rejected(key: StreamKey, received: Received) -> Sequence[Rejected]:
    """Return the rejected records of a part, and one that counts further ones if there are any."""
    further = received.further_rejected
    if not further:
        return received.rejected
    uncounted = Rejected(
        source=key.stream,
        location="further records",
        reason=f"{further:,} further records were rejected and not kept",
        content=b"",
        request=b"",
    )
    return (*received.rejected, uncounted)


def _store_request(request: bytes | None) -> bytes | None:
    """Return what is stored of a request: None for none, nothing of one that is too large."""
    return b"" if request and _limit_request(request) == _TOO_LARGE else request or None


def list_quarantine(
    connection: Connection, provider: str | None, limit: int, *, before: int | None = None
) -> QuarantinePage:
    """Return a page of quarantined records, the newest first, with the start of their content.

    `before` continues an earlier page.
    """
    conditions = [] if provider is None else [quarantine.c.provider == provider]
    total = count_matching(connection, quarantine, conditions)
    page = select(*_LISTED).select_from(_RECORDS).where(*conditions)
    page = page.order_by(quarantine.c.id.desc()).limit(limit + 1)
    if before is not None:
        page = page.where(quarantine.c.id < before)
    found = connection.execute(page).all()
    rows = found[:limit]
    return QuarantinePage(
        [_represent_record(row) for row in rows],
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
        **_represent_record(row),
        "from": start,
        "to": end,
        "recorded_at": isoformat_or_none(find_record_time(row.content, row.created_at)),
        "request": row.request.decode("utf-8", "replace") if row.request else None,
    }


def load_quarantined_row(connection: Connection, id_: int) -> Row[Any] | None:
    """Return the row of a record, None if there is none."""
    query = select(*_WHOLE).select_from(_RECORDS).where(quarantine.c.id == id_)
    return connection.execute(query).one_or_none()


def find_retry_obstacle(record: Row[Any]) -> str | None:
    """Return why the content of a record cannot be mapped again, None if it can be."""
    if record.retried_at is not None:
        return "The record was already retried."
    if record.stream != PUSH_STREAM:
        return "Tocsin read the record from the SIEM, so only a backfill can read it again."
    if not record.content_length:
        return "Tocsin did not store the content of the record."
    length = record.request_length
    if length is None and is_whole_push(record):
        length = record.content_length
    if length is None:
        return "Tocsin did not store the part of the request that contains the record."
    if length == 0 or length >= MAX_QUARANTINED:
        return "The request was larger than the 16 KiB that Tocsin stores of it."
    return None


def get_request(record: Row[Any]) -> bytes | None:
    """Return the request that a retry of a pushed record maps, None if it is not stored."""
    content: bytes | None = record.content if is_whole_push(record) else record.request
    return content


def is_whole_push(record: Row[Any]) -> bool:
    """Return whether a record is a push that was rejected as a whole."""
    return record.stream == PUSH_STREAM and bool(record.location.startswith(WHOLE_PUSH))


def lock_siblings(connection: Connection, record: Row[Any]) -> dict[int, str]:
    """Return the locations, by ID, of other records of the same request that wait for a retry.

    Whoever retries one of them at the same time waits until this transaction ends.
    """
    if not record.request:
        return {}
    holder = record.request_id or record.id
    is_sibling = or_(
        quarantine.c.id == holder,
        quarantine.c.request_id == holder,
        quarantine.c.request == record.request,
    )
    query = select(quarantine.c.id, quarantine.c.location).where(
        quarantine.c.id.between(record.id - _ADJACENT, record.id + _ADJACENT),
        quarantine.c.provider == record.provider,
        quarantine.c.stream == PUSH_STREAM,
        quarantine.c.created_at == record.created_at,
        is_sibling,
        quarantine.c.retried_at.is_(None),
    )
    # the order avoids deadlocks
    rows = connection.execute(query.order_by(quarantine.c.id).with_for_update())
    return {row.id: row.location for row in rows if row.id != record.id}


def get_received_at(record: Row[Any]) -> datetime:
    """Return when the push of a record was received, as far as Tocsin has stored it."""
    received_at: datetime = record.received_at or record.created_at
    return received_at


def find_retried(
    connection: Connection, provider: str, moments: Collection[datetime]
) -> dict[datetime, datetime]:
    """Return when the pushes that were retried at these moments were received, the last of each."""
    received_at = func.coalesce(quarantine.c.received_at, quarantine.c.created_at)
    query = select(quarantine.c.retried_at, func.max(received_at)).where(
        quarantine.c.provider == provider,
        quarantine.c.stream == PUSH_STREAM,
        quarantine.c.retried_at.in_(list(moments)),
    )
    rows = connection.execute(query.group_by(quarantine.c.retried_at))
    return {row[0]: row[1] for row in rows}


def mark_retried(connection: Connection, ids: Collection[int], by: str, now: datetime) -> int:
    """Mark records as retried; return how many of them exist and were not retried before."""
    marked = connection.execute(
        update(quarantine)
        .where(quarantine.c.id.in_(list(ids)), quarantine.c.retried_at.is_(None))
        .values(retried_at=now, retried_by=by)
    )
    return marked.rowcount


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


def _represent_record(row: Row[Any]) -> dict[str, Any]:
    return {
        "id": row.id,
        "provider": row.provider,
        "stream": row.stream,
        "source": row.source,
        "location": row.location,
        "reason": row.reason,
        "content": row.content.decode("utf-8", "replace"),
        "created_at": isoformat(row.created_at),
        "retried_at": isoformat_or_none(row.retried_at),
        "retried_by": row.retried_by,
        "retry_obstacle": find_retry_obstacle(row),
    }
