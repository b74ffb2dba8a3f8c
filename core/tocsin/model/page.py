"""Pages of incidents read from a SIEM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from tocsin.model.incident import Incident
from tocsin.model.vocabulary import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A record that could not be read; it is kept aside with its reason and never stops a feed."""

    source: str
    location: str
    """Where in the source, in words that help to find it: `byte 10240`, `page 3, item 7`."""
    reason: str
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """A stretch of one source that a page accounts for: from `start` up to, not including, `end`.

    Stretches of time are given as datetimes, stretches of a file as byte offsets. `lost` says why
    a stretch could not be read, `passed_over` why it was not meant to be; where neither is given,
    it was read. A lost stretch of time is tried again later, as a backfill.
    """

    source: str
    start: datetime | int
    end: datetime | int
    lost: str | None = None
    passed_over: str | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of time: from `start` up to, not including, `end`."""

    start: datetime
    end: datetime

    def __contains__(self, moment: datetime) -> bool:
        """Whether `moment` lies in the window."""
        return self.start <= moment < self.end


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """What came from a SIEM, and what of the SIEM it accounts for."""

    incidents: tuple[Incident, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    covered: tuple[Covered, ...] = ()
    records: int = 0
    """How many records were read, of whatever kind."""
    incomplete: tuple[str, ...] = ()
    """The ids of incidents that lack what could not be had: they are read again as new ones are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Received):
    """One step of a read: what was found, and where to go on once it is stored."""

    next_position: Mapping[str, Json]
