"""Events, deliveries and their receipts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from math import inf
from urllib.parse import urlsplit

from tocsin.model.contract import Contract
from tocsin.model.vocabulary import Json, Severity, Vocabulary


class EventType(Vocabulary):
    """The four event types. Later versions do not add event types."""

    INCIDENT_ALERT = "incident-alert"
    INVESTIGATION_COMPLETED = "investigation-completed"
    INVESTIGATION_FAILED = "investigation-failed"
    SCHEDULE_DISABLED = "schedule-disabled"


class ChangeType(Vocabulary):
    """Changes that plugins and destinations can follow.

    Tocsin queues changes in the same way as events but does not send an envelope for them.
    """

    INCIDENT_CHANGED = "incident-changed"
    """Severity, status or disposition of an incident changed."""
    INVESTIGATION_FINISHED = "investigation-finished"
    """A run of an investigation that a person, a program or a schedule started has completed or
    failed."""

    @property
    def template_type(self) -> EventType:
        """The event type whose templates render the state after a change."""
        if self is ChangeType.INCIDENT_CHANGED:
            return EventType.INCIDENT_ALERT
        return EventType.INVESTIGATION_COMPLETED


class DeliveryType(Vocabulary):
    """Types of deliveries: the four event types, and the types of changes."""

    INCIDENT_ALERT = "incident-alert"
    INVESTIGATION_COMPLETED = "investigation-completed"
    INVESTIGATION_FAILED = "investigation-failed"
    SCHEDULE_DISABLED = "schedule-disabled"
    INCIDENT_CHANGED = "incident-changed"
    INVESTIGATION_FINISHED = "investigation-finished"


_TYPES: Mapping[str, EventType | ChangeType] = {
    kind.value: kind for kinds in (EventType, ChangeType) for kind in kinds
}


def parse_type(word: str) -> EventType | ChangeType:
    """Return the type of an event or a change; ValueError for a type of a later version."""
    if (kind := _TYPES.get(word)) is None:
        raise ValueError(f"{word!r} is not a valid event type")
    return kind


_RISKS = (
    (80, Severity.CRITICAL),
    (60, Severity.HIGH),
    (30, Severity.MEDIUM),
    (0.1, Severity.LOW),
    (-inf, Severity.INFORMATIONAL),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event that destinations can receive, or a change that they can follow.

    `event_type`, `timestamp` and `data` form the envelope for receivers. `subject` (such as
    `incident:7`), `related` and `context` are for templates and channels, and never part of the
    envelope.
    """

    id: str
    event_type: EventType | ChangeType
    timestamp: datetime
    data: Mapping[str, Json]
    subject: str
    related: tuple[str, ...] = ()
    context: Mapping[str, Json] = field(default_factory=dict)

    @property
    def template_type(self) -> EventType:
        """The event type whose templates render the event.

        Differs from `event_type` only for changes.
        """
        kind = self.event_type
        return kind.template_type if isinstance(kind, ChangeType) else kind

    @property
    def key(self) -> str:
        """A globally unique name of the subject, across Tocsin installations.

        Incident numbers restart with each database, so the key of an incident combines the host of
        the public URL, the provider, and the SIEM's ID. Sessions and schedules have unique
        subjects.
        """
        incident = self.context.get("incident")
        if not isinstance(incident, Mapping) or not incident.get("external_id"):
            return self.subject
        tocsin = urlsplit(str(self.data.get("url", ""))).netloc
        parts = tocsin, incident.get("provider"), incident["external_id"]
        name = "\0".join(map(str, parts)).encode(errors="replace")
        return f"incident:{sha256(name).hexdigest()[:32]}"

    @property
    def severity(self) -> Severity:
        """The severity of the incident; for a completed run, a severity based on the risk score.

        A failed run counts as Medium, and a disabled schedule as High, because the schedule no
        longer runs.
        """
        if self.event_type is EventType.SCHEDULE_DISABLED:
            return Severity.HIGH
        risk = self.data.get("risk_score")
        if isinstance(risk, int | float):
            return next(severity for least, severity in _RISKS if risk >= least)
        try:
            return Severity.parse(str(self.data.get("severity")))
        except ValueError:
            return Severity.MEDIUM

    def variables(self) -> dict[str, Json]:
        """Return the variables that an operator's condition can use."""
        return {
            "event_type": self.event_type.value,
            "data": self.data,
            "subject": self.subject,
            "context": self.context,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A delivery of one event to one destination."""

    id: str
    event: Event
    attempt: int
    """The number of the attempt, counted from 1."""
    remote_id: str | None
    """The receiver's ID of the object from an earlier delivery about this subject, or None if there
    is none."""
    tried_at: datetime | None = None
    """Latest possible start of earlier attempts, including attempts of nodes that crashed; None if
    there was no earlier attempt. A search might not find the results of these attempts yet."""
    previous_remote_id: str | None = None
    """If the delivery is replayed, the receiver's ID of the object from the last successful
    attempt; otherwise, None."""
    related: Mapping[str, str] = field(default_factory=dict)
    """Remote IDs by subject, from earlier deliveries about subjects that are related to the
    event."""
    render: Callable[[str], bytes]
    """Renders a part of the event, such as `body`, with the destination's template."""
    contract: Contract | None = None
    """The contract of the receiver that provides the templates; None if there is none."""
    trace_headers: Mapping[str, str] = field(default_factory=dict)
    """Headers with which an HTTP receiver continues the trace (W3C Trace Context); empty without
    tracing.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The receiver's response to an accepted delivery."""

    status: int | None = None
    response: bytes = b""
    remote_id: str | None = None
    """The receiver's ID of the object. Later events about the same subject use this ID to find the
    object."""
    remote_url: str | None = None
    """The URL at which people open the object."""
    closed: tuple[str, ...] = ()
    """Remote IDs of the objects that this attempt closed, or that an earlier attempt might
    have closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """Result of the health check of a plugin. A plugin without `problems` is healthy."""

    detail: str
    problems: tuple[str, ...] = ()
