"""The chain of one incident: what brought it, what was told of it, and who looked into it."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, RowMapping, select

from tocsin.accounting.followed import load_investigations
from tocsin.accounting.stretches import represent_point
from tocsin.accounting.told import load_events_about
from tocsin.clock import isoformat
from tocsin.incidents.storing.alerting import ALERTED, BELOW, QUIET, ROSE
from tocsin.store.tables import coverage, incidents

ALERT_WORDS = {
    ALERTED: "an event was written for whoever wants to hear of it",
    BELOW: "it is below Medium, of which nobody is told",
    QUIET: "it was read quietly, as the provider's settings have it",
    ROSE: "it was first read below Medium and rose later, of which nobody is told"
    " unless the provider's settings ask for it",
}


def trace_incident(connection: Connection, number: int) -> dict[str, Any] | None:
    """Return the incident's whole chain as it is shown, None where there is none of this number."""
    query = select(incidents).where(incidents.c.number == number)
    incident = connection.execute(query).mappings().one_or_none()
    if incident is None:
        return None
    subject = f"incident:{number}"
    return {
        "incident": _represent_incident(incident),
        "coverage": _load_coverage(connection, incident["coverage_id"]),
        "alert": {
            "outcome": incident["alert_outcome"],
            "detail": ALERT_WORDS[incident["alert_outcome"]],
        },
        "events": load_events_about(connection, subject)[subject],
        "investigations": load_investigations(connection, number),
    }


def _represent_incident(row: RowMapping) -> dict[str, Any]:
    names = ("number", "provider", "external_id", "title", "severity")
    return {name: row[name] for name in names} | {"created_at": isoformat(row["created_at"])}


def _load_coverage(connection: Connection, row_id: int) -> dict[str, Any]:
    """Return the stretch that brought it."""
    query = select(coverage).where(coverage.c.id == row_id)
    row = connection.execute(query).mappings().one()
    began, ended = isoformat(row["started_at"]), isoformat(row["finished_at"])
    # of what is pushed a row holds the latest moment, which may be after that of this incident
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
