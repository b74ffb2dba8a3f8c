"""Detections, and how often their incidents turned out to be false positives."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, bindparam, case, func, select

from tocsin.model import IncidentDisposition
from tocsin.store.tables import incident_alerts, incident_triage, incidents

_i, _a, _t = incidents.c, incident_alerts.c, incident_triage.c
MAX_DISPOSITIONS = 10_000
"""How many of the latest dispositions a ranking considers, since more take longer."""
_PROVIDER = "provider"


def _build(*conditions: ColumnElement[bool]) -> Select[Any]:
    latest = (
        select(_t.incident_number, _t.disposition)
        .where(_t.disposition_at >= bindparam("since"), _t.disposition.is_not(None))
        .order_by(_t.disposition_at.desc())
        .limit(MAX_DISPOSITIONS)
        .subquery()
    )
    # Alerts that were stored without their rule count for the rule that has their title as its name
    name = func.coalesce(_a.rule, _a.title, _i.title).label("name")
    incident = (_i.provider, name, _i.number, latest.c.disposition)
    classified = (
        select(*incident, func.max(_a.rule).label("rule"))
        .select_from(
            latest.join(incidents, _i.number == latest.c.incident_number).outerjoin(
                incident_alerts, _a.incident_number == _i.number
            )
        )
        .where(*conditions)
        .group_by(*incident)
        .subquery()
    )
    columns = classified.c
    counts = {
        each: func.count(case((columns.disposition == each.value, 1))).label(each.name)
        for each in IncidentDisposition
    }
    false_positives = counts[IncidentDisposition.FALSE_POSITIVE]
    detection, total = (columns.provider, columns.name), func.count().label("total")
    rule, latest_number = func.max(columns.rule), func.max(columns.number)
    ranked = (
        select(*detection, rule.label("rule"), latest_number.label("latest"))
        .add_columns(*counts.values(), total)
        .group_by(*detection)
        .order_by(false_positives.desc(), total.desc(), *detection)
        .limit(bindparam("limit"))
        .subquery()
    )
    shown = ranked.c
    order = (shown[false_positives.name].desc(), shown.total.desc(), shown.provider, shown.name)
    title = (
        select(_a.title)
        .where(shown.rule.is_not(None), _a.incident_number == shown.latest)
        .where(func.coalesce(_a.rule, _a.title) == shown.name)
        .order_by(_a.occurred_at.desc(), _a.external_id.desc())
        .limit(1)
        .scalar_subquery()
    )
    return select(ranked, func.coalesce(title, shown.name).label("title")).order_by(*order)


_every = _build()
_of_provider = _build(_i.provider == bindparam(_PROVIDER))


@dataclass(frozen=True, slots=True)
class Detection:
    """A provider's detection rule, with the dispositions of the incidents that it raised."""

    provider: str
    rule: str | None
    """The rule; None if only the title of the alerts is known."""
    title: str
    """The title of the rule's latest alert in the latest incident."""
    latest_incident: int
    dispositions: dict[IncidentDisposition, int]

    @property
    def incident_count(self) -> int:
        """Return the number of classified incidents."""
        return sum(self.dispositions.values())

    @property
    def false_positive_ratio(self) -> float:
        """Return the share of false positives among them, from 0 to 1."""
        return self.dispositions.get(IncidentDisposition.FALSE_POSITIVE, 0) / self.incident_count


def rank_detections(
    connection: Connection, since: datetime, provider: str | None, limit: int
) -> list[Detection]:
    """Return the detections of the incidents classified since a time, most false positives first.

    Considers the latest `MAX_DISPOSITIONS`. An alert without a rule counts for its title, an
    incident without alerts for its own title, and one with alerts of several rules for each of
    them. `provider` is None for all.
    """
    values = {"since": since, "limit": limit}
    if provider is None:
        rows = connection.execute(_every, values)
    else:
        rows = connection.execute(_of_provider, {**values, _PROVIDER: provider})
    return [
        Detection(
            row.provider,
            row.rule,
            row.title,
            row.latest,
            {each: count for each in IncidentDisposition if (count := getattr(row, each.name))},
        )
        for row in rows
    ]
