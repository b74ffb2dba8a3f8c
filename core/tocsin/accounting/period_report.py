"""Report for a period, as in `tocsin prove`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import chain
from typing import Any

from sqlalchemy import Connection, func, select

from tocsin.accounting.anomalies import find_anomalies, represent_anomaly, was_created_in
from tocsin.accounting.coverage_report import CoverageReport, report_coverage
from tocsin.accounting.delivery_outcomes import summarize_deliveries
from tocsin.accounting.intervals import MAX_LISTED, Period
from tocsin.accounting.triage_report import summarize_triage
from tocsin.clock import isoformat
from tocsin.delivery import summarize_statuses
from tocsin.incidents import (
    LOST_PUSHES,
    PUSH_STREAM,
    AlertDecision,
    count_closures,
    list_backlogs,
)
from tocsin.stops import list_stops
from tocsin.store.tables import incidents, removed_incidents


def report_period(connection: Connection, period: Period, now: datetime) -> dict[str, Any]:
    """Return the report for the period as JSON.

    If `unaccounted` is empty, everything has arrived, is pending, or is on hold for a recorded
    reason. Each list contains at most MAX_LISTED items of each kind, those that were found first.
    """
    reading = report_coverage(connection, period)
    arrivals = summarize_deliveries(connection, period)
    unexplained = chain(_list_unread(reading), find_anomalies(connection, period, now))
    return {
        "since": isoformat(period.since),
        "until": isoformat(period.until),
        "coverage": reading.coverage,
        "gaps": reading.gaps[:MAX_LISTED],
        "lost": reading.lost[:MAX_LISTED],
        "passed_over": reading.passed_over[:MAX_LISTED],
        "failures": reading.failures[:MAX_LISTED],
        "silent": reading.silent,
        "quarantined": reading.quarantined,
        "waiting_pushes": _list_waiting(connection),
        "stops": [
            stop.represent_history()
            for stop in list_stops(connection, period.since, period.until, MAX_LISTED)
        ],
        "incidents": _count_incidents(connection, period),
        "triage": summarize_triage(connection, period),
        "remote_statuses": summarize_statuses(connection),
        "siem_closures": count_closures(connection, period.since, period.until),
        "events": arrivals.events,
        "changes": arrivals.changes,
        "destinations": arrivals.destinations,
        "not_arrived": arrivals.not_arrived,
        "not_arrived_total": arrivals.not_arrived_total,
        "unaccounted": list(_take_first(unexplained)),
    }


def _list_unread(reading: CoverageReport) -> Iterator[dict[str, Any]]:
    for gap in reading.gaps:
        detail = f"{_describe_extent(gap)}: Tocsin did not read this interval"
        yield represent_anomaly("gap", _describe_source(gap), gap["found_at"], detail)
    for lost in reading.lost:
        detail = f"{_describe_extent(lost)}: {lost['reason']}"
        yield represent_anomaly("lost", _describe_source(lost), lost["found_at"], detail)
    for failure in reading.failures:
        if failure["stream"] == PUSH_STREAM:  # no sender is asked again
            what = f"{failure['provider']}/{PUSH_STREAM}"
            if failure["outcome"] == LOST_PUSHES:
                yield represent_anomaly("lost-push", what, failure["from"], failure["reason"])
                continue
            detail = f"pushes were refused ({failure['outcome']}): {failure['reason']}"
            yield represent_anomaly("refused-push", what, failure["from"], detail)
    for silent in reading.silent:
        detail = "Tocsin has not read this stream since then, but no failure is recorded"
        what = f"{silent['provider']}/{silent['stream']}"
        yield represent_anomaly("silent", what, silent["read_at"], detail)


def _list_waiting(connection: Connection) -> list[dict[str, Any]]:
    """Return the pushes that the intake accepted but Tocsin has not stored, by provider."""
    return [
        {
            "provider": backlog.provider,
            "stored": backlog.stored,
            "accepted": backlog.accepted,
            "since": isoformat(backlog.since),
        }
        for backlog in list_backlogs(connection)
    ]


def _take_first(anomalies: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the first MAX_LISTED anomalies of each kind."""
    counts: Counter[str] = Counter()
    for anomaly in anomalies:
        counts[anomaly["kind"]] += 1
        if counts[anomaly["kind"]] <= MAX_LISTED:
            yield anomaly


def _describe_source(interval: dict[str, Any]) -> str:
    return f"{interval['provider']}/{interval['stream']} {interval['source']}"


def _describe_extent(interval: dict[str, Any]) -> str:
    unit = "bytes " if isinstance(interval["from"], int) else ""
    return f"{unit}{interval['from']} to {interval['to']}"


def _count_incidents(connection: Connection, period: Period) -> dict[str, int]:
    """Return how many incidents were first stored in the period, by alert outcome.

    The numbers include incidents that retention has removed since then. If there are any,
    `removed` counts them separately.
    """
    by_outcome = (
        select(incidents.c.alert_outcome, func.count())
        .where(*was_created_in(period))
        .group_by(incidents.c.alert_outcome)
    )
    counts = {outcome.value: 0 for outcome in AlertDecision}
    counts |= dict(map(tuple, connection.execute(by_outcome)))
    r = removed_incidents.c
    removed = (
        select(r.alert_outcome, func.count())
        .where(r.created_at > period.since, r.created_at <= period.until)
        .group_by(r.alert_outcome)
    )
    for outcome, count in connection.execute(removed):
        counts[outcome] += count
        counts["removed"] = counts.get("removed", 0) + count
    return counts
