"""Vendor-neutral contents of a SIEM, the truth that a provider is compared with."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from tocsin.clock import Clock
from tocsin.model import Entity, IncidentStatus, Severity, Window

_TICK = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One version of an incident in the SIEM."""

    id: str
    number: int
    title: str
    severity: Severity | str
    """A severity, or a string for a severity that the provider does not know."""
    created_at: datetime
    changed_at: datetime
    """When this version was written, to the microsecond."""
    status: IncidentStatus = IncidentStatus.NEW
    description: str = ""
    entities: tuple[Entity, ...] = ()
    merged_into: str | None = None
    """The ID of the incident into which this incident was merged."""
    visible_at: datetime | None = None
    """When the API starts to show this version, in true time; None for immediately."""
    entities_at: datetime | None = None
    """When the API starts to show the entities, in true time; None for immediately."""
    malformed: bool = False
    """Whether the API returns this version as an unreadable record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEvent:
    """An event in the SIEM's log."""

    id: str
    occurred_at: datetime
    entities: tuple[Entity, ...]
    text: str = ""
    malformed: bool = False
    """Whether the API returns this event as an unreadable record."""


class Siem:
    """The contents of a SIEM: every version of every incident, the log events and the comments.

    `clock` provides the true time. The SIEM's own clock, which sets `changed_at` and `created_at`,
    is ahead by `skew`. You can change `skew` at any time.
    """

    def __init__(self, clock: Clock, skew: timedelta = timedelta(0)) -> None:
        self.clock = clock
        self.skew = skew
        self.poisoned: set[str] = set()
        """The IDs of incidents that make every page that contains them fail."""
        self._versions: dict[str, list[Case]] = {}
        self._timeline: list[tuple[datetime, str]] = []
        self._births: list[tuple[datetime, str]] = []
        self._log: list[LogEvent] = []
        self._comments: dict[str, list[str]] = {}

    def now(self) -> datetime:
        """Return the current time according to the SIEM's clock."""
        return self.clock.now() + self.skew

    def put(self, case: Case) -> Case:
        """Convert a new version's times to the SIEM's clock, store the version and return it.

        The version never gets an earlier time than the previous one, even if the SIEM's clock was
        set back.
        """
        versions = self._versions.setdefault(case.id, [])
        changed_at = case.changed_at + self.skew
        created_at = case.created_at + self.skew
        if versions:
            changed_at = max(changed_at, versions[-1].changed_at + _TICK)
            created_at = versions[0].created_at
        else:
            insort(self._births, (created_at, case.id))
        kept = replace(case, changed_at=changed_at, created_at=created_at)
        versions.append(kept)
        insort(self._timeline, (changed_at, case.id))
        return kept

    def get(self, identifier: str) -> Case | None:
        """Return the latest visible version of an incident; None if there is none."""
        now = self.clock.now()
        for version in reversed(self._versions.get(identifier, ())):
            if version.visible_at is None or version.visible_at <= now:
                return self._as_shown(version, now)
        return None

    def changed(self, window: Window) -> list[Case]:
        """Return the incidents whose latest visible version was written in `window`, oldest first.

        Incidents with the same time are ordered by ID.
        """
        first, last = (bisect_left(self._timeline, (end, "")) for end in (window.start, window.end))
        found = ((at, self.get(name)) for at, name in self._timeline[first:last])
        return [case for at, case in found if case is not None and case.changed_at == at]

    def created(self, window: Window) -> list[Case]:
        """Return the visible incidents that were created in `window`, in order.

        Use this method for vendors that can list only by creation time and do not report changes.
        """
        first, last = (bisect_left(self._births, (end, "")) for end in (window.start, window.end))
        found = (self.get(name) for _, name in self._births[first:last])
        return [case for case in found if case is not None]

    def versions(self, window: Window) -> list[Case]:
        """Return all visible versions whose `changed_at` is in `window`, in order.

        Use this method for vendors that write a new record for each change.
        """
        now = self.clock.now()
        first, last = (bisect_left(self._timeline, (end, "")) for end in (window.start, window.end))
        stamped = (
            next(version for version in self._versions[name] if version.changed_at == at)
            for at, name in self._timeline[first:last]
        )
        shown = (
            version
            for version in stamped
            if version.visible_at is None or version.visible_at <= now
        )
        return [self._as_shown(version, now) for version in shown]

    def log(self, log_event: LogEvent) -> LogEvent:
        """Convert a log event's time to the SIEM's clock, store the event and return it."""
        kept = replace(log_event, occurred_at=log_event.occurred_at + self.skew)
        insort(self._log, kept, key=_occurred_at)
        return kept

    def logged(self, window: Window, entity: Entity) -> list[LogEvent]:
        """Return the log events in a window that contain an entity, latest first."""
        ends = (window.start, window.end)
        first, last = (bisect_left(self._log, end, key=_occurred_at) for end in ends)
        return [event for event in reversed(self._log[first:last]) if entity in event.entities]

    def comment(self, identifier: str, text: str) -> None:
        """Store a comment on an incident."""
        self._comments.setdefault(identifier, []).append(text)

    def comments(self, identifier: str) -> list[str]:
        """Return the comments on an incident, in the order in which they were written."""
        return list(self._comments.get(identifier, ()))

    def truth(self) -> dict[str, Case]:
        """Return the latest version of every incident by ID, as if everything were visible.

        Incidents whose latest version is malformed are left out; see `unreadable`.
        """
        return {case.id: case for case in self._latest() if not case.malformed}

    def unreadable(self) -> dict[str, Case]:
        """Return the incidents whose latest version is malformed, by ID."""
        return {case.id: case for case in self._latest() if case.malformed}

    def _latest(self) -> Sequence[Case]:
        return [versions[-1] for versions in self._versions.values()]

    def _as_shown(self, case: Case, now: datetime) -> Case:
        is_late = case.entities_at is not None and case.entities_at > now
        return replace(case, entities=()) if is_late else case


def _occurred_at(log_event: LogEvent) -> datetime:
    return log_event.occurred_at
