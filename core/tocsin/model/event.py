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
    """Types of changes to which plugins and destinations can react.

    Tocsin queues changes in the same way as events but does not send an envelope for them.
    """

    INCIDENT_CHANGED = "incident-changed"
    """An incident's severity, status or disposition changed."""
    INVESTIGATION_FINISHED = "investigation-finished"
    """An investigation run that a person, a program or a schedule started has completed or
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
    `incident:7`), `related` and `context` are for templates and channels and never part of the
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

        For a change, this type differs from `event_type`; otherwise, the two are the same.
        """
        kind = self.event_type
        return kind.template_type if isinstance(kind, ChangeType) else kind

    @property
    def key(self) -> str:
        """A name for the subject that is unique across all Tocsin installations.

        Incident numbers restart with each database, so an incident's key combines the host of the
        public URL, the provider, and the SIEM's ID. For sessions and schedules, the key is the
        subject, which is already unique.
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
        """The incident's severity; for a completed run, a severity based on the risk score.

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
    """The attempt's number, counted from 1."""
    remote_id: str | None
    """The receiver's ID for the object, known from an earlier delivery about this subject; None if
    there is none."""
    tried_at: datetime | None = None
    """The latest time at which an earlier attempt can have started, even on a node that crashed;
    None if there was no earlier attempt. A search might not yet find what earlier attempts
    created."""
    previous_remote_id: str | None = None
    """If the delivery is replayed, the receiver's ID for the object from the last successful
    attempt; otherwise, None."""
    related: Mapping[str, str] = field(default_factory=dict)
    """The receiver's object IDs for related subjects, by subject, from earlier deliveries."""
    render: Callable[[str], bytes]
    """Renders a part of the event, such as `body`, with the destination's template."""
    contract: Contract | None = None
    """The contract of the receiver whose templates are used; None if there is none."""
    trace_headers: Mapping[str, str] = field(default_factory=dict)
    """Headers that let an HTTP receiver continue the trace (W3C Trace Context); empty without
    tracing.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The receiver's response to an accepted delivery."""

    status: int | None = None
    response: bytes = b""
    remote_id: str | None = None
    """The receiver's ID for the object. Tocsin uses this ID to find the object for later events
    about the same subject."""
    remote_url: str | None = None
    """The URL at which people open the object."""
    closed: tuple[str, ...] = ()
    """The receiver's IDs of objects that this attempt closed or that an earlier attempt might have
    closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """Result of a plugin's health check. A plugin without `problems` is healthy."""

    detail: str
    problems: tuple[str, ...] = ()
