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
    """The four kinds of notification; there is never a fifth."""

    INCIDENT_ALERT = "incident-alert"
    INVESTIGATION_COMPLETED = "investigation-completed"
    INVESTIGATION_FAILED = "investigation-failed"
    SCHEDULE_DISABLED = "schedule-disabled"


_RISKS = (
    (80, Severity.CRITICAL),
    (60, Severity.HIGH),
    (30, Severity.MEDIUM),
    (0.1, Severity.LOW),
    (-inf, Severity.INFORMATIONAL),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened and that destinations may hear of.

    `event_type`, `timestamp` and `data` are the envelope that receivers get. `subject`
    (`incident:7`), `related` and `context` are for templates and channels and are never part of it.
    """

    id: str
    event_type: EventType
    timestamp: datetime
    data: Mapping[str, Json]
    subject: str
    related: tuple[str, ...] = ()
    context: Mapping[str, Json] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """A name for what it is about that nothing else has, whichever Tocsin tells of it.

        Numbers of incidents begin anew with each database, so the key of one is made of where this
        Tocsin is reached, of its provider and of what the SIEM calls it. Sessions and schedules
        have subjects that are unique.
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
        """How bad it is: what the incident says, or what the risk score comes to.

        A run that failed is Medium, a schedule that was disabled High: nothing runs any more.
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
        """Return what an operator's condition sees of it."""
        return {
            "event_type": self.event_type.value,
            "data": self.data,
            "subject": self.subject,
            "context": self.context,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One event on its way to one destination."""

    id: str
    event: Event
    attempt: int
    """1 for the first attempt."""
    remote: str | None
    """The id that an earlier delivery of this subject left at the destination, or None."""
    tried_at: datetime | None = None
    """After this no earlier attempt began, also none of which nothing is known because its node
    died; None where there was none. What it made may not be found by a search yet."""
    left: str | None = None
    """The id that this very delivery left, where it arrived before and is sent again."""
    related: Mapping[str, str] = field(default_factory=dict)
    """The ids that earlier deliveries left there of subjects that the event is related to."""
    render: Callable[[str], bytes]
    """Returns the named part rendered from the destination's template; `body` is the usual one."""
    contract: Contract | None = None
    """What the receiver whose templates these are takes and answers; None where nobody says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What the receiver answered to a delivery that it accepted."""

    status: int | None = None
    response: bytes = b""
    remote_id: str | None = None
    """What the receiver calls what it made, for later events of the subject to find it."""
    remote_url: str | None = None
    """Where a person can look at that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What a plugin found when it checked its far side; no `problems` means that all is well."""

    detail: str
    problems: tuple[str, ...] = ()
