"""Whether an incident is alerted, and the event that says so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tocsin.clock import isoformat
from tocsin.events import new_id
from tocsin.model import Entity, Event, EventType, Severity

ALERTED = "alerted"
BELOW = "below-threshold"
QUIET = "quiet"
ROSE = "rose-unalerted"


@dataclass(frozen=True, slots=True)
class AlertPolicy:
    """How one provider's incidents are alerted."""

    public_url: str
    quiet: bool = False
    on_escalation: bool = False


def judge(severity: str, before: str | None, policy: AlertPolicy) -> str:
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


def alert_event(
    incident: Mapping[str, Any], entities: Iterable[Entity], policy: AlertPolicy, now: datetime
) -> Event:
    """Return the `incident-alert` of an incident, given as its columns."""
    url = f"{policy.public_url}/incidents/{incident['number']}"
    return Event(
        id=new_id("evt"),
        event_type=EventType.INCIDENT_ALERT,
        timestamp=now,
        data={
            "incident_number": incident["number"],
            "title": incident["title"],
            "severity": incident["severity"],
            "status": incident["status"],
            "provider": incident["provider"],
            "url": url,
        },
        subject=f"incident:{incident['number']}",
        context={"incident": _context(incident, entities, url)},
    )


def _context(incident: Mapping[str, Any], entities: Iterable[Entity], url: str) -> dict[str, Any]:
    members = ("number", "provider", "external_id", "external_number", "title", "description")
    states = ("severity", "raw_severity", "severity_assumed", "status", "raw_status")
    return {
        **{name: incident[name] for name in (*members, *states, "merged_into", "techniques")},
        "occurred_at": isoformat(incident["occurred_at"]),
        "url": url,
        "source_url": incident["source_url"],
        "entities": [{"kind": entity.kind.value, "value": entity.value} for entity in entities],
    }
