"""Pages of incidents read from a SIEM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from tocsin.model.incident import Incident
from tocsin.model.vocabulary import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A record that could not be read. Tocsin quarantines the record with the reason, and
    continues.
    """

    source: str
    location: str
    """The location in the source, such as `byte 10240` or `page 3, item 7`."""
    reason: str
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """An interval of one source that a page accounts for; it includes `start` and excludes `end`.

    `start` and `end` are datetimes for time intervals, and byte offsets for files. `lost` is the
    reason why an interval could not be read. `passed_over` is the reason why an interval was
    skipped on purpose. If neither is set, the interval was read. Tocsin retries a lost time
    interval later as a backfill.
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
    """Incidents from a SIEM, and the intervals that they account for."""

    incidents: tuple[Incident, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    further_rejected: int = 0
    """The number of rejected records that are not in `rejected`. Tocsin counts these records, but
    does not store their contents."""
    covered: tuple[Covered, ...] = ()
    records: int = 0
    """The number of records that were read, of any kind."""
    incomplete: tuple[str, ...] = ()
    """The IDs of incidents with missing details. Tocsin refreshes these incidents like new
    incidents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Received):
    """One step of a read, with its incidents and the position from which the read continues."""

    next_position: Mapping[str, Json]
