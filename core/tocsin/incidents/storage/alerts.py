"""Alert decision of incidents, and the `incident-alert` event."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from tocsin.identifiers import new_id
from tocsin.incidents.documents import StoredEntity, represent_entities, represent_incident
from tocsin.incidents.storage.merge import IncidentChange
from tocsin.model import Event, EventType, IncidentStatus, Marking, Severity


class AlertDecision(StrEnum):
    """Result of the alert decision for an incident."""

    ALERTED = "alerted"
    BELOW_THRESHOLD = "below-threshold"
    FIRST_SEEN_CLOSED = "first-seen-closed"
    QUIET = "quiet"
    ROSE_UNALERTED = "rose-unalerted"


@dataclass(frozen=True, slots=True)
class IncidentPolicy:
    """What follows from a provider's incidents: alerts and refreshes."""

    public_url: str
    quiet: bool = False
    on_escalation: bool = False
    first_seen_closed: bool = True
    """Whether Tocsin sends alerts for incidents that are Closed when they are first stored."""
    stores_records: bool = True
    """Whether alerts are stored as the SIEM returned them."""
    refresh_after: tuple[timedelta, ...] = ()
    """At which ages a new incident is refreshed, in order; empty for never."""
    marking: Marking = field(default_factory=Marking)
    """The sharing marking of the provider's incidents, for receivers that have such a field."""


def judge_alerts(
    changes: Iterable[IncidentChange], policy: IncidentPolicy, now: datetime
) -> list[Event]:
    """Set the alert outcome of each change, and return the events of those alerted now."""
    events = []
    for change in changes:
        before = change.alert_outcome
        values = change.values
        outcome = _judge_alert(values["severity"], values["status"], before, policy)
        values["alert_outcome"] = outcome
        if outcome is AlertDecision.ALERTED and outcome != before:
            columns = {**(change.stored or {}), **values}
            events.append(build_alert_event(columns, change.named_entities(), policy, now))
    return events


def _judge_alert(
    severity: str, status: str, before: str | None, policy: IncidentPolicy
) -> AlertDecision:
    """Return the alert outcome of an incident, given its earlier outcome, if any.

    An incident is alerted once: when it is first stored at Medium or above or, where the
    provider's settings allow it, when its severity rises to that. One that is Closed when it is
    first stored is never alerted where the settings say so.
    """
    serious = Severity(severity).rank >= Severity.MEDIUM.rank
    if before is None:
        if status == IncidentStatus.CLOSED and not policy.first_seen_closed:
            return AlertDecision.FIRST_SEEN_CLOSED
        if not serious:
            return AlertDecision.BELOW_THRESHOLD
        return AlertDecision.QUIET if policy.quiet else AlertDecision.ALERTED
    if before == AlertDecision.BELOW_THRESHOLD and serious:
        return AlertDecision.ALERTED if policy.on_escalation else AlertDecision.ROSE_UNALERTED
    return AlertDecision(before)


def build_alert_event(
    incident: Mapping[str, Any],
    entities: Iterable[StoredEntity],
    policy: IncidentPolicy,
    now: datetime,
) -> Event:
    """Build the `incident-alert` event of an incident, given as its columns."""
    shown = represent_entities(entities)
    context = represent_incident(incident, shown, public_url=policy.public_url)
    members = ("title", "severity", "status", "provider", "url")
    return Event(
        id=new_id("evt"),
        event_type=EventType.INCIDENT_ALERT,
        timestamp=now,
        data={"incident_number": context["number"], **{name: context[name] for name in members}},
        subject=f"incident:{context['number']}",
        context={
            "incident": context,
            "marking": {"tlp": policy.marking.tlp.value, "pap": policy.marking.pap.value},
        },
    )
