"""Pages of incidents read from a SIEM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from tocsin.model.incident import Incident
from tocsin.model.vocabulary import Json

MAX_QUARANTINED = 16_384
"""The most bytes of a rejected record that are stored. A request needs to be smaller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A record that could not be read. Tocsin quarantines it with the reason and continues."""

    source: str
    location: str
    """Where the record is in the source, such as `byte 10240` or `page 3, item 7`."""
    reason: str
    content: bytes
    request: bytes | None = None
    """For a push: a smaller request from which `unpack` returns only this record. Tocsin stores it
    for a retry after a fix, if it is smaller than 16 KiB. If None, Tocsin stores the whole request.
    If empty, Tocsin stores no request, because the record is not in it.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """An interval of a source that was read, lost or skipped.

    The interval includes `start` and excludes `end`.

    `start` and `end` are datetimes for time intervals, and byte offsets for files. `lost` says why
    the interval could not be read, and `passed_over` why it was skipped on purpose. If neither
    `lost` nor `passed_over` is set, the interval was read. Tocsin retries a lost time interval
    later, as a backfill.
    """

    source: str
    start: datetime | int
    end: datetime | int
    lost: str | None = None
    passed_over: str | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """A time interval that includes `start` and excludes `end`."""

    start: datetime
    end: datetime

    def __contains__(self, moment: datetime) -> bool:
        """Whether `moment` lies in the window."""
        return self.start <= moment < self.end


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """Incidents from a SIEM, and the intervals that were read, lost or skipped."""

    incidents: tuple[Incident, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    further_rejected: int = 0
    """How many further records were rejected. Tocsin counts these records but does not store their
    contents."""
    covered: tuple[Covered, ...] = ()
    records: int = 0
    """How many records of any kind were read."""
    incomplete: tuple[str, ...] = ()
    """The IDs of incidents whose details are missing. Tocsin refreshes them like new incidents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Received):
    """One step of a read: its incidents, and the position from which the read continues."""

    next_position: Mapping[str, Json]
