"""Number of incidents by hour and severity."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import BigInteger, Connection, bindparam, func, select, type_coerce

from tocsin.model import Severity
from tocsin.store.tables import EPOCH, incidents

_HOUR = timedelta(hours=1)
_i = incidents.c
_hour = (type_coerce(_i.occurred_at, BigInteger) // (_HOUR // timedelta(microseconds=1))).label(
    "hour"
)
_counts = (
    select(_hour, _i.severity, func.count())
    .where(_i.occurred_at >= bindparam("since"), _i.occurred_at < bindparam("until"))
    .group_by(_hour, _i.severity)
)


@dataclass(frozen=True, slots=True)
class HourlyCount:
    """Number of incidents that occurred in one hour, by severity."""

    start: datetime
    counts: dict[Severity, int]


def count_by_hour(connection: Connection, now: datetime, hours: int) -> list[HourlyCount]:
    """Return the counts of the latest hours, the current one last; empty hours have no counts."""
    last = (now - EPOCH) // _HOUR
    numbers = range(last - hours + 1, last + 1)
    found: dict[int, dict[Severity, int]] = {number: {} for number in numbers}
    window = {"since": EPOCH + numbers.start * _HOUR, "until": EPOCH + numbers.stop * _HOUR}
    for number, severity, count in connection.execute(_counts, window):
        found[number][Severity(severity)] = count
    return [HourlyCount(EPOCH + number * _HOUR, counts) for number, counts in found.items()]
