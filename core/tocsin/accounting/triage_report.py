"""Triage in a period: how many incidents each author changed, and their dispositions."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, func, select

from tocsin.accounting.intervals import Period
from tocsin.model import IncidentDisposition
from tocsin.store.tables import incident_changes, incident_triage, incidents

_SKEW = timedelta(hours=1)
"""The most by which a node whose clock is behind can set `updated_at` back."""


def summarize_triage(connection: Connection, period: Period) -> dict[str, Any]:
    """Return the numbers of triage changes by author, and of dispositions, in the period.

    A disposition counts if it was set in the period and is still the incident's disposition.
    """
    # Each change updates `updated_at`, which has an index
    recent = select(incidents.c.number).where(incidents.c.updated_at > period.since - _SKEW)
    c, t = incident_changes.c, incident_triage.c
    by_author = (
        select(c.by, c.actor, func.count(), func.count(c.incident_number.distinct()))
        .where(c.incident_number.in_(recent), c.at > period.since, c.at <= period.until)
        .group_by(c.by, c.actor)
        .order_by(c.actor, c.by)
    )
    by_disposition = (
        select(t.disposition, func.count())
        .where(t.incident_number.in_(recent))
        .where(t.disposition_at > period.since, t.disposition_at <= period.until)
        .group_by(t.disposition)
    )
    counts = {disposition.value: 0 for disposition in IncidentDisposition}
    return {
        "authors": [
            {"by": by, "actor": actor, "changes": changes, "incidents": count}
            for by, actor, changes, count in connection.execute(by_author)
        ],
        "dispositions": counts | dict(map(tuple, connection.execute(by_disposition))),
    }
