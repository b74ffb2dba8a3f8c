"""Alerts of an incident as they are stored, with their records."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, RowMapping, and_, or_, select

from tocsin.clock import isoformat
from tocsin.model import Json
from tocsin.store.tables import incident_alerts, incidents

AlertPosition = tuple[datetime, str]
"""Time and ID of the last alert of a page."""
_a = incident_alerts.c


@dataclass(frozen=True, slots=True)
class AlertPage:
    """One page of the alerts of an incident, the latest first."""

    alerts: list[dict[str, Json]]
    total: int
    next: AlertPosition | None
    """Where the next page starts; None on the last page."""


def list_alerts(
    connection: Connection, number: int, *, limit: int, after: AlertPosition | None
) -> AlertPage | None:
    """Return a page of the alerts of an incident, None for an unknown number."""
    known = select(incidents.c.alert_count).where(incidents.c.number == number)
    total = connection.scalar(known)
    if total is None:
        return None
    query = select(_a.external_id).where(_a.incident_number == number)
    if after is not None:
        at, external_id = after
        is_earlier = and_(_a.occurred_at == at, _a.external_id < external_id)
        query = query.where(or_(_a.occurred_at < at, is_earlier))
    newest_first = (_a.occurred_at.desc(), _a.external_id.desc())
    found = connection.scalars(query.order_by(*newest_first).limit(limit + 1)).all()
    # Records are long: they are read only after the alerts are sorted
    wanted = (_a.incident_number == number, _a.external_id.in_(found[:limit]))
    rows = connection.execute(select(incident_alerts).where(*wanted).order_by(*newest_first))
    shown = rows.mappings().all()
    is_last = len(found) <= limit or not shown
    following = None if is_last else (shown[-1]["occurred_at"], shown[-1]["external_id"])
    return AlertPage([_represent_alert(row) for row in shown], total, following)


def _represent_alert(row: RowMapping) -> dict[str, Json]:
    names = ("external_id", "title", "severity", "rule", "flow", "record")
    return {**{name: row[name] for name in names}, "occurred_at": isoformat(row["occurred_at"])}
