"""Schemas of remote objects and of those that do not match their incidents."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from pydantic import Field

from tocsin.incidents import ClosureState
from tocsin.model import IncidentStatus, Json, StatusMismatch
from tocsin.web.parsing import QueryModel, ResponseModel
from tocsin.web.schemas.examples import FINISHED
from tocsin.web.schemas.fields import Limit, composite_cursor_field

LIST = "f"
_NUMBERS = range(10**18)


class RemoteObjectItem(ResponseModel):
    """An object in a receiver, such as a ticket, with the status that Tocsin read last."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "destination": "soc-queue",
        "remote_id": "SEC-7",
        "remote_url": "https://example.atlassian.net/browse/SEC-7",
        "status": "Done",
        "resolution": "Won't Do",
        "is_open": False,
        "status_changed_at": FINISHED,
        "status_read_at": FINISHED,
    }

    destination: str
    remote_id: str
    remote_url: str | None
    status: str | None = Field(
        description="Status in the receiver; null if the receiver no longer has the object."
    )
    resolution: str | None
    is_open: bool | None
    status_changed_at: datetime = Field(description="When Tocsin first read this status.")
    status_read_at: datetime


class TracedRemoteObject(RemoteObjectItem):
    """A remote object of an incident."""

    EXAMPLE: ClassVar[dict[str, Json]] = RemoteObjectItem.EXAMPLE | {"mismatch": "object-closed"}

    mismatch: StatusMismatch | None = Field(
        description="Kind of mismatch; null if the status matches the incident."
    )


class SiemClosure(ResponseModel):
    """Closure of an incident in its SIEM because its ticket was closed."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "destination": "soc-queue",
        "ticket": "SEC-7: Done / Won't Do",
        "state": "written",
        "failures": 0,
        "finished_at": FINISHED,
    }

    destination: str
    ticket: str
    state: ClosureState
    failures: int
    reason: str | None = Field(description="Why the last attempt failed.")
    created_at: datetime
    finished_at: datetime | None


class StatusMismatchItem(RemoteObjectItem):
    """A remote object whose status does not match its incident's."""

    EXAMPLE: ClassVar[dict[str, Json]] = RemoteObjectItem.EXAMPLE | {
        "mismatch": "object-closed",
        "incident_number": 4711,
        "incident_status": "Active",
    }

    mismatch: StatusMismatch = Field(
        description="`object-closed`: the object is closed, but the incident is not. "
        "`object-open`: the object is open, but the incident is closed. "
        "`object-missing`: the receiver no longer has the object."
    )
    incident_number: int
    incident_status: IncidentStatus


class StatusMismatchQuery(QueryModel):
    """Query parameters for listing status mismatches."""

    mismatch: StatusMismatch | None = Field(default=None, description="Filter by kind of mismatch.")
    destination: str | None = Field(
        default=None,
        max_length=100,
        pattern=r"^[^\x00]*$",
        description="Filter by destination.",
    )
    limit: Limit = 50
    cursor: composite_cursor_field(LIST, _NUMBERS, str) | None = None  # type: ignore[valid-type]


class StatusMismatchList(ResponseModel):
    """One page of status mismatches."""

    mismatches: list[StatusMismatchItem]
    next_cursor: str | None = Field(description="Next `cursor`; null on the last page.")


class RemoteStatusSummary(ResponseModel):
    """Counts for a destination that has the setting `status_interval`."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "destination": "soc-queue",
        "failing_since": FINISHED,
        "reason": "503: busy",
    }

    destination: str
    objects: int = Field(description="Number of objects whose status was read.")
    mismatches: int = Field(
        description="Number of objects whose status does not match their incident's."
    )
    failing_since: datetime | None = Field(
        description="All reads since this time have failed; null if the last read succeeded."
    )
    reason: str | None
