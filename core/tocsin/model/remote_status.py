"""Status of an object that Tocsin keeps at a receiver, such as a ticket."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.model.triage import IncidentDisposition
from tocsin.model.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteStatus:
    """The status of a ticket, alert or case, as its receiver reports it."""

    status: str
    """The receiver's name for the status, such as `In Progress`."""
    is_open: bool
    resolution: str | None = None
    """The receiver's reason for closing the object, such as `Won't Do`."""
    version: str | None = None
    """Identifies the object's version in the receiver, such as the time of its last change."""
    parent_id: str | None = None
    """The ID of the object from which this object gets its status, such as an alert's case."""


class StatusMismatch(Vocabulary):
    """Kind of mismatch between a remote object and its incident."""

    OBJECT_CLOSED = "object-closed"
    """The object is closed, the incident is not."""
    OBJECT_OPEN = "object-open"
    """The incident is closed, the object is open."""
    OBJECT_MISSING = "object-missing"
    """The receiver no longer has the object of an incident that is not closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteResolution:
    """What people decided about an incident at a receiver, by closing or reopening its object."""

    incident_number: int
    destination: str
    disposition: IncidentDisposition | None
    """None for no disposition."""
    is_closed: bool
    """False if the object was reopened."""
    reason: str
