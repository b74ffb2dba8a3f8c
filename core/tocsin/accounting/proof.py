"""The account of a period: what was read, what became of it, and what nothing explains."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, func, select

from tocsin.accounting.arrivals import account_for_arrivals
from tocsin.accounting.period import MOST, Period
from tocsin.accounting.reading import Reading, account_for_reading
from tocsin.accounting.unexplained import created_in, find_unexplained, unaccounted
from tocsin.clock import isoformat
from tocsin.incidents.storing.alerting import ALERTED, BELOW, QUIET, ROSE
from tocsin.store.tables import incidents


def prove(connection: Connection, period: Period, now: datetime) -> dict[str, Any]:
    """Return the account of the period as it is shown.

    Where `unaccounted` is empty, everything is accounted for: it arrived, is on its way, or rests
    with a reason. The longer lists hold their oldest items, MOST of each kind.
    """
    reading = account_for_reading(connection, period)
    arrivals = account_for_arrivals(connection, period)
    unexplained = [*_unread(reading), *find_unexplained(connection, period, now)]
    return {
        "since": isoformat(period.since),
        "until": isoformat(period.until),
        "coverage": reading.coverage,
        "holes": reading.holes[:MOST],
        "lost": reading.lost[:MOST],
        "passed_over": reading.passed_over[:MOST],
        "failures": reading.failures[:MOST],
        "silent": reading.silent,
        "quarantined": reading.quarantined,
        "incidents": _count_incidents(connection, period),
        "events": arrivals.events,
        "destinations": arrivals.destinations,
        "not_arrived": arrivals.not_arrived,
        "not_arrived_total": arrivals.not_arrived_total,
        "unaccounted": unexplained,
    }


def _unread(reading: Reading) -> Iterator[dict[str, Any]]:
    for hole in reading.holes[:MOST]:
        words = f"{_extent(hole)} was not read"
        yield unaccounted("hole", _source(hole), hole["found_at"], words)
    for lost in reading.lost[:MOST]:
        words = f"{_extent(lost)}: {lost['reason']}"
        yield unaccounted("lost", _source(lost), lost["found_at"], words)
    for silent in reading.silent:
        words = "it has not been read since, and no failure says why"
        what = f"{silent['provider']}/{silent['stream']}"
        yield unaccounted("silent", what, silent["read_at"], words)


def _source(stretch: dict[str, Any]) -> str:
    return f"{stretch['provider']}/{stretch['stream']} {stretch['source']}"


def _extent(stretch: dict[str, Any]) -> str:
    unit = "byte " if isinstance(stretch["from"], int) else ""
    return f"{unit}{stretch['from']} to {stretch['to']}"


def _count_incidents(connection: Connection, period: Period) -> dict[str, int]:
    """Return how many were first stored in the period, by what was said of their alert."""
    by_outcome = (
        select(incidents.c.alert_outcome, func.count())
        .where(*created_in(period))
        .group_by(incidents.c.alert_outcome)
    )
    counts = dict.fromkeys((ALERTED, BELOW, QUIET, ROSE), 0)
    return counts | dict(map(tuple, connection.execute(by_outcome)))
