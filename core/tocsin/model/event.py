"""Events, their deliveries, and what comes of those."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from tocsin.model.contract import Contract
from tocsin.model.words import Json, Vocabulary


class EventType(Vocabulary):
    """The four kinds of notification; there is never a fifth."""

    INCIDENT_ALERT = "incident-alert"
    INVESTIGATION_COMPLETED = "investigation-completed"
    INVESTIGATION_FAILED = "investigation-failed"
    SCHEDULE_DISABLED = "schedule-disabled"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One event on its way to one destination."""

    id: str
    event: Event
    attempt: int
    """1 for the first attempt."""
    remote: str | None
    """The id that an earlier delivery of this subject left at the destination, or None."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What a plugin found when it checked its far side; no `problems` means that all is well."""

    detail: str
    problems: tuple[str, ...] = ()
