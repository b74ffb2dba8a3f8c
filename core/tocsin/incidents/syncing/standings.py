"""How each provider does: written by the node that reads it, shown to whoever asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, RowMapping, func, literal, select, update

from tocsin.clock import isoformat_or_none
from tocsin.incidents.coverage.ledger import ReadFailure
from tocsin.incidents.syncing.lease import ProviderLease
from tocsin.store.tables import Timestamp, providers

_DATE_PRECISION = 2_000
MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncRound:
    """How one round of reading a provider's streams ended."""

    ended_at: datetime
    next_at: datetime
    failure: ReadFailure | None
    """What stopped it; None where every stream was read to its end."""
    failures: int
    """How many rounds in a row have failed."""
    clock_skew: timedelta | None


def record_round(connection: Connection, lease: ProviderLease, ended: SyncRound) -> None:
    """Note how a round ended; nothing where the lease was lost."""
    values: dict[str, Any] = {
        "read_at": ended.ended_at,
        "next_read_at": ended.next_at,
        "failures": ended.failures,
        "outcome": ended.failure.outcome if ended.failure else "read",
        "reason": ended.failure.reason if ended.failure else None,
        "clock_skew_ms": None if ended.clock_skew is None else ended.clock_skew // MILLISECOND,
        "failing_since": None,
    }
    if ended.failure is None:
        values["succeeded_at"] = ended.ended_at
    else:
        values["failing_since"] = func.coalesce(
            providers.c.failing_since, literal(ended.ended_at, Timestamp)
        )
    connection.execute(
        update(providers)
        .where(providers.c.name == lease.provider, providers.c.lease == lease.token)
        .values(values)
    )


def load_statuses(connection: Connection, now: datetime) -> Mapping[str, dict[str, Any]]:
    """Return how each provider does that was ever read, as it is shown, by name."""
    rows = connection.execute(select(providers).order_by(providers.c.name)).mappings()
    return {row["name"]: _represent_status(row, now) for row in rows}


def _represent_status(row: RowMapping, now: datetime) -> dict[str, Any]:
    moments = ("read_at", "succeeded_at", "failing_since", "next_read_at")
    skew = row["clock_skew_ms"]
    return {
        "plugin": row["plugin"],
        "state": _choose_state(row, now),
        "outcome": row["outcome"],
        "reason": row["reason"],
        "failures": row["failures"],
        **{name: isoformat_or_none(row[name]) for name in moments},
        "clock_skew_seconds": None if skew is None else _skew_seconds(skew),
        "node": None if row["node"] is None else str(row["node"]),
    }


def _skew_seconds(skew: int) -> float:
    """Return a skew in seconds; none where it is less than the whole seconds of `Date` tell."""
    return 0.0 if abs(skew) < _DATE_PRECISION else skew / 1000


def _choose_state(row: RowMapping, now: datetime) -> str:
    is_read = row["leased_until"] is not None and now < row["leased_until"]
    if row["read_at"] is None or not is_read:
        return "waiting"
    return "failing" if row["failures"] else "healthy"
