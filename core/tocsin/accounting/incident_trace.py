"""Trace of one incident: coverage, alert, events, deliveries and investigations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, RowMapping, select

from tocsin.accounting.event_trace import load_incident_events, load_session_events
from tocsin.accounting.intervals import MAX_LISTED
from tocsin.clock import isoformat, isoformat_or_none
from tocsin.delivery import load_remote_objects
from tocsin.incidents import AlertDecision, load_closure, load_history, represent_point
from tocsin.model import NodeKind
from tocsin.stops import StopKind, list_stops
from tocsin.store.tables import coverage, incidents, relations, sessions, write_backs

MAX_INVESTIGATIONS = 20
"""The maximum number of investigations in a trace, newest first."""
_SESSION = (
    *("id", "schedule_id", "query", "status", "title", "verdict", "risk_score", "error"),
    "created_by",
)
_MOMENTS = ("created_at", "completed_at")
_WRITTEN = ("run", "state", "attempts", "reason")
_WRITTEN_MOMENTS = ("created_at", "finished_at")


def load_investigations(connection: Connection, number: int) -> list[dict[str, Any]]:
    """Return the investigations that examined an incident, newest first.

    Each investigation includes the events and changes about it, and its finished and pending
    write-backs to the incident.
    """
    columns = [sessions.c[name] for name in (*_SESSION, *_MOMENTS)]
    query = select(*columns).where(sessions.c.id.in_(_select_sessions(number)))
    newest = query.order_by(sessions.c.id.desc()).limit(MAX_INVESTIGATIONS)
    rows = connection.execute(newest).mappings().all()
    if not rows:
        return []
    ids = [row["id"] for row in rows]
    events = load_session_events(connection, ids)
    written = _load_write_backs(connection, number, ids)
    return [
        {
            **{name: row[name] for name in _SESSION},
            **{name: isoformat_or_none(row[name]) for name in _MOMENTS},
            **events[row["id"]],
            "write_backs": written[row["id"]],
        }
        for row in rows
    ]


def _select_sessions(number: int) -> Any:
    """Return the query for sessions that examined an incident."""
    return select(relations.c.source_value).where(
        relations.c.target_value == str(number),
        relations.c.target_kind == NodeKind.INCIDENT,
        relations.c.source_kind == NodeKind.SESSION,
    )


def _load_write_backs(
    connection: Connection, number: int, of: Sequence[str]
) -> dict[str, list[dict[str, Any]]]:
    """Return the write-backs of these sessions to the incident, by session."""
    columns = (write_backs.c[name] for name in ("session_id", *_WRITTEN, *_WRITTEN_MOMENTS))
    query = select(*columns).where(  # without the comments, which may be long
        write_backs.c.incident_number == number, write_backs.c.session_id.in_(of)
    )
    found = defaultdict(list)
    for row in connection.execute(query.order_by(write_backs.c.run)).mappings():
        found[row["session_id"]].append(_represent_write_back(row))
    return found


def _represent_write_back(row: RowMapping) -> dict[str, Any]:
    moments = {name: isoformat_or_none(row[name]) for name in _WRITTEN_MOMENTS}
    return {name: row[name] for name in _WRITTEN} | moments


_NO_END = "~"
"""Later than every time in JSON."""
ALERT_WORDS = {
    AlertDecision.ALERTED: "an incident-alert event was created",
    AlertDecision.BELOW_THRESHOLD: "no incident-alert event was created, because the severity is "
    "below Medium",
    AlertDecision.FIRST_SEEN_CLOSED: "no incident-alert event was created, because the incident "
    "was already Closed when Tocsin first read it and `alert_when_first_seen_closed` was off",
    AlertDecision.QUIET: "no incident-alert event was created, because Tocsin first read the "
    "incident in a backfill without alerts, or on the first read of a stream while "
    "`quiet_first_fetch` was on",
    AlertDecision.ROSE_UNALERTED: "no incident-alert event was created, because the severity was "
    "below Medium when Tocsin first read the incident and `alert_on_escalation` was off when the "
    "severity rose",
}


def trace_incident(connection: Connection, number: int) -> dict[str, Any] | None:
    """Return the trace of an incident as JSON, or None if the number is unknown."""
    query = select(incidents).where(incidents.c.number == number)
    incident = connection.execute(query).mappings().one_or_none()
    if incident is None:
        return None
    found = load_incident_events(connection, number)
    return {
        "incident": _represent_incident(incident),
        "coverage": _load_coverage(connection, incident["coverage_id"]),
        "alert": {
            "outcome": incident["alert_outcome"],
            "detail": ALERT_WORDS[incident["alert_outcome"]],
        },
        **found,
        "stops": _list_stops(connection, incident, [*found["events"], *found["changes"]]),
        "remote_objects": load_remote_objects(connection, number),
        "siem_closure": load_closure(connection, number),
        "triage": load_history(connection, number),
        "investigations": load_investigations(connection, number),
    }


def _list_stops(
    connection: Connection, incident: RowMapping, events: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the emergency stops that delayed reading the incident or delivering these events."""
    since = min(incident["occurred_at"], incident["created_at"])
    found = [stop.represent_history() for stop in list_stops(connection, since, None, MAX_LISTED)]
    provider = StopKind.PROVIDER, incident["provider"]
    spans = {provider: (isoformat(since), isoformat(incident["created_at"]))}
    for event in events:
        for delivery in event["deliveries"]:
            key = StopKind.DESTINATION, delivery["destination"]
            begin, end = spans.get(key, (event["timestamp"], ""))
            latest = delivery["finished_at"] or _NO_END
            spans[key] = min(begin, event["timestamp"]), max(end, latest)
    return [
        stop
        for stop in found
        if (span := spans.get((stop["kind"], stop["name"])))
        and stop["since"] <= span[1]
        and span[0] <= (stop["ended_at"] or _NO_END)
    ]


def _represent_incident(row: RowMapping) -> dict[str, Any]:
    names = ("number", "provider", "external_id", "title", "severity")
    return {name: row[name] for name in names} | {"created_at": isoformat(row["created_at"])}


def _load_coverage(connection: Connection, row_id: int) -> dict[str, Any]:
    """Return the interval in which the incident was read."""
    query = select(coverage).where(coverage.c.id == row_id)
    row = connection.execute(query).mappings().one()
    began, ended = isoformat(row["started_at"]), isoformat(row["finished_at"])
    # for pushed incidents a row holds the latest time, which may be later than this incident
    is_pushed = row["unit"] == "time" and row["start"] == row["end"]
    return {
        "provider": row["provider"],
        "stream": row["stream"],
        "source": row["source"],
        "from": began if is_pushed else represent_point(row["start"], row["unit"]),
        "to": ended if is_pushed else represent_point(row["end"], row["unit"]),
        "outcome": row["outcome"],
        "reason": row["reason"],
        "started_at": began,
        "finished_at": ended,
    }
