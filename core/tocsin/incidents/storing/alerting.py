"""Whether an incident is alerted, and the event that says so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from tocsin.events import new_id
from tocsin.incidents.representation import represent_incident
from tocsin.model import Entity, Event, EventType, Severity

ALERTED = "alerted"
BELOW = "below-threshold"
QUIET = "quiet"
ROSE = "rose-unalerted"


@dataclass(frozen=True, slots=True)
class AlertPolicy:
    """What follows from one provider's incidents."""

    public_url: str
    quiet: bool = False
    on_escalation: bool = False
    reread_after: tuple[timedelta, ...] = ()
    """How long after it was new an incident is read again, in order; nothing where it is not."""


def judge_alert(severity: str, before: str | None, policy: AlertPolicy) -> str:
    """Return what is to be said of an incident's alert, given what was said before, if anything.

    An incident is alerted once: when it is first stored at Medium or above or, where the
    provider's settings ask for it, when it rises to that.
    """
    serious = Severity(severity).rank >= Severity.MEDIUM.rank
    if before is None:
        return (QUIET if policy.quiet else ALERTED) if serious else BELOW
    if before == BELOW and serious:
        return ALERTED if policy.on_escalation else ROSE
    return before


def build_alert_event(
    incident: Mapping[str, Any], entities: Iterable[Entity], policy: AlertPolicy, now: datetime
) -> Event:
    """Return the `incident-alert` of an incident, given as its columns."""
    context = represent_incident(
        incident,
        [{"kind": entity.kind.value, "value": entity.value} for entity in entities],
        public_url=policy.public_url,
    )
    members = ("title", "severity", "status", "provider", "url")
    return Event(
        id=new_id("evt"),
        event_type=EventType.INCIDENT_ALERT,
        timestamp=now,
        data={"incident_number": context["number"], **{name: context[name] for name in members}},
        subject=f"incident:{context['number']}",
        context={"incident": context},
    )
