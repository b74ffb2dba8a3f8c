"""Sample events for channel conformance tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from tocsin.delivery import build_sample
from tocsin.model import (
    Confidence,
    Disposition,
    Entity,
    EntityAssessment,
    EntityKind,
    Event,
    EventType,
    Json,
    Persona,
    Report,
    Statement,
    Verdict,
    Window,
)
from tocsin.reports import to_json
from tocsin.testing.clock import ManualClock

URL = "https://tocsin.example.com"
ADDRESSES = ("203.0.113.7", "203.0.113.8")
"""The IP addresses in a sample incident."""
FOUND_ADDRESS = "203.0.113.101"
"""The address that a sample report finds malicious, beside the first of the incident."""
KNOWN_ADDRESS = "203.0.113.102"
"""An address that a sample report mentions with no finding against it."""
REPORT_TITLE = "A scan from a known scanner"
_HOSTILE = "It is **no** [test](https://example.com/x) of `nobody`, @all: <b>see</b> #1 | {{ 7 }}"


def address(value: str) -> Entity:
    """Return an IP address as an entity."""
    return Entity(EntityKind.IP, value)


class ChannelEvents:
    """Sample events; each has an ID of its own, and later events have greater IDs."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self._numbers = 0

    def alert(
        self,
        *,
        number: int = 7,
        title: str = "Port scan",
        entities: Sequence[Entity] = tuple(map(address, ADDRESSES)),
    ) -> Event:
        """Return an alert about an incident; by default, the incident has two addresses."""
        event = self._event(EventType.INCIDENT_ALERT, f"incident:{number}")
        named = [{"kind": entity.kind.value, "value": entity.value} for entity in entities]
        known = {"external_id": str(number), "number": number, "title": title}
        incident = {**event.context["incident"], **known, "entities": named}
        data = {**event.data, "incident_number": number, "title": title, "severity": "High"}
        return replace(event, data=data, context={"incident": incident})

    def completed(
        self, *related: str, also: Sequence[str] = (), title: str = REPORT_TITLE
    ) -> Event:
        """Return the event for a completed investigation that concerns the subjects in `related`.

        The report rates these addresses as malicious: the incident's first address, one new
        address, and the addresses in `also`.
        """
        event = self._event(EventType.INVESTIGATION_COMPLETED, f"session:{self._numbers}")
        report = self._report(FOUND_ADDRESS, *also, title=title)
        counts = {"risk_score": report.risk_score, "entity_count": len(report.entities)}
        return replace(
            event,
            data={**event.data, **counts, "title": report.title},
            related=("schedule:nightly", *related),
            context={**event.context, "report": to_json(report)},
        )

    def failed(self, times: int) -> Event:
        """Return the event for a scheduled investigation that failed `times` times in a row."""
        event = self._event(EventType.INVESTIGATION_FAILED, "schedule:nightly")
        return replace(event, data={**event.data, "consecutive_failures": times})

    def disabled(self) -> Event:
        """Return the event for a disabled schedule."""
        return self._event(EventType.SCHEDULE_DISABLED, "schedule:nightly")

    def _event(self, kind: EventType, subject: str) -> Event:
        self._numbers += 1
        event = build_sample(kind, URL, self.clock.now())
        data: dict[str, Json] = {**event.data}
        return replace(event, id=f"evt_{self._numbers:026}", subject=subject, data=data)

    def _report(self, *found: str, title: str) -> Report:
        now = self.clock.now()
        known = dict.fromkeys((ADDRESSES[0], *found), Disposition.MALICIOUS)
        assessed: dict[str, Any] = {**known, KNOWN_ADDRESS: Disposition.UNKNOWN}
        return Report(
            title=title,
            query="What is incident 7 about?",
            persona=Persona.ANALYST,
            window=Window(now - timedelta(days=1), now),
            verdict=Verdict.MALICIOUS,
            confidence=Confidence.HIGH,
            risk_score=82.5,
            summary=(Statement(_HOSTILE, ("step:1",)),),
            entities=tuple(
                EntityAssessment(entity=address(value), disposition=disposition)
                for value, disposition in assessed.items()
            ),
        )
