"""Coverage ledger: the intervals of each source that were read, lost or passed over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Row, RowMapping, Select, Table, bindparam, insert, select, update

from tocsin.clock import isoformat
from tocsin.incidents.coverage.positions import StreamKey
from tocsin.model import Covered
from tocsin.store.tables import EPOCH, coverage, quarantine
from tocsin.store.text import clean_text

READ = "read"
LOST = "lost"
PASSED_OVER = "passed-over"
ACCOUNTED = (READ, LOST, PASSED_OVER)
"""What says what became of a stretch; any other outcome is a failure to read."""
SOURCE = 4_096
REASON = 1_000
# Stretches that follow each other share a row, so that an idle feed does not fill the ledger; but
# never over a full hour, so that the account of a period can be given again later.
ROW_SPAN = timedelta(hours=1)
# What reads the past writes rows between those of what reads on
_LOOKED_AT = 5
_IDENTICAL_COLUMNS = ("unit", "outcome", "reason", "past")

_latest = (
    select(coverage)
    .where(
        coverage.c.provider == bindparam("provider"),
        coverage.c.stream == bindparam("stream"),
        coverage.c.source == bindparam("source"),
    )
    .order_by(coverage.c.id.desc())
    .limit(_LOOKED_AT)
)


@dataclass(frozen=True, slots=True)
class ReadCounts:
    """What one page brought."""

    records: int = 0
    new: int = 0
    changed: int = 0
    rejected: int = 0


@dataclass(frozen=True, slots=True)
class ReadFailure:
    """Why a stream could not be read."""

    outcome: str
    reason: str


def record_interval(
    connection: Connection, key: StreamKey, stretch: Covered, now: datetime, *, past: bool = False
) -> int:
    """Return the id of the row that this stretch belongs to, made or made longer for it."""
    row = _build_row(key, stretch, _choose_outcome(stretch), past=past)
    return _extend(connection, row, now) or _insert(connection, row, now)


def _choose_outcome(stretch: Covered) -> str:
    if stretch.lost is not None:
        return LOST
    return READ if stretch.passed_over is None else PASSED_OVER


def _build_row(
    key: StreamKey, stretch: Covered, outcome: str, *, past: bool = False
) -> dict[str, Any]:
    return {
        "provider": key.provider,
        "stream": key.stream,
        "source": clean_text(stretch.source, SOURCE),
        "unit": "bytes" if isinstance(stretch.start, int) else "time",
        "outcome": outcome,
        "reason": clean_text(stretch.lost or stretch.passed_over, REASON),
        "past": past,
        "start": _to_number(stretch.start),
        "end": _to_number(stretch.end),
    }


def record_failure(
    connection: Connection,
    key: StreamKey,
    failure: ReadFailure,
    now: datetime,
    *,
    goes_on: bool,
) -> int:
    """Note that a stream could not be read; one that `goes_on` makes its row longer."""
    stretch = Covered(source=key.stream, start=now, end=now, lost=failure.reason)
    row = _build_row(key, stretch, failure.outcome)
    extended = _extend(connection, row, now, adjacent=False) if goes_on else None
    return extended or _insert(connection, row, now)


def _extend(
    connection: Connection, row: Mapping[str, Any], now: datetime, *, adjacent: bool = True
) -> int | None:
    """Make a late row longer and return its id, or None where this continues none of them."""
    latest = connection.execute(_latest, row).mappings().all()
    found = next(
        (it for it in _iter_extendable_rows(latest) if _continues(it, row, now, adjacent=adjacent)),
        None,
    )
    if found is None:
        return None
    connection.execute(
        update(coverage)
        .where(coverage.c.id == found["id"])
        .values(
            start=row["start"] if adjacent and _is_moment(found) else found["start"],
            end=row["end"],
            finished_at=now,
            pages=coverage.c.pages + 1,
        )
    )
    return int(found["id"])


def _iter_extendable_rows(latest: Sequence[RowMapping]) -> Iterator[RowMapping]:
    """Yield the rows that may grow, the latest first: none from before something was lost.

    So what was read since a loss is in rows with greater ids, and known from what was before.
    """
    for place, row in enumerate(latest):
        if row["outcome"] == LOST:
            if place == 0:
                yield row
            return
        yield row


def _continues(
    latest: RowMapping, row: Mapping[str, Any], now: datetime, *, adjacent: bool
) -> bool:
    same_hour = timedelta(0) <= now - latest["started_at"] and _get_hour(now) == _get_hour(
        latest["started_at"]
    )
    # What is pushed covers moments alone, of which a row holds the latest
    are_moments = _is_moment(latest) and _is_moment(row)
    fits = not adjacent or are_moments or latest["end"] == row["start"]
    return (
        same_hour and fits and all(latest[column] == row[column] for column in _IDENTICAL_COLUMNS)
    )


def _is_moment(row: Mapping[Any, Any]) -> bool:
    return bool(row["unit"] == "time" and row["start"] == row["end"])


def _get_hour(moment: datetime) -> int:
    return (moment - EPOCH) // ROW_SPAN


def _insert(connection: Connection, row: Mapping[str, Any], now: datetime) -> int:
    counts = dict.fromkeys(("records", "new", "changed", "rejected"), 0)
    span = {"started_at": now, "finished_at": now, "pages": 1}
    inserted = connection.execute(insert(coverage).values({**row, **counts, **span}))
    key = inserted.inserted_primary_key
    return int(key[0]) if key else 0


def add_counts(connection: Connection, row: int, counts: ReadCounts) -> None:
    """Add what a page brought to the row that covers it."""
    connection.execute(
        update(coverage)
        .where(coverage.c.id == row)
        .values(
            records=coverage.c.records + counts.records,
            new=coverage.c.new + counts.new,
            changed=coverage.c.changed + counts.changed,
            rejected=coverage.c.rejected + counts.rejected,
        )
    )


def _to_number(point: datetime | int) -> int:
    return point if isinstance(point, int) else (point - EPOCH) // timedelta(microseconds=1)


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
