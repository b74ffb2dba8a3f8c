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
    """One version of one incident, as the SIEM keeps it."""

    id: str
    number: int
    title: str
    severity: Severity | str
    """A word of the vendor's that nobody knows is given as text."""
    created_at: datetime
    changed_at: datetime
    """The SIEM's own time of this version, to the microsecond."""
    status: IncidentStatus = IncidentStatus.NEW
    description: str = ""
    entities: tuple[Entity, ...] = ()
    merged_into: str | None = None
    """The id of the incident that this one was merged into."""
    visible_at: datetime | None = None
    """From when on the API shows this version, by the true time; None for at once."""
    entities_at: datetime | None = None
    """From when on the API shows the entities, by the true time; None for at once."""
    malformed: bool = False
    """Whether the API shows something that nobody can understand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEvent:
    """Something that the SIEM has logged, and that is no incident."""

    id: str
    occurred_at: datetime
    entities: tuple[Entity, ...]
    text: str = ""
    malformed: bool = False
    """Whether the API shows something that nobody can understand."""


class Siem:
    """Every version of every incident, and what the API shows of them at this moment.

    Beside them, it has a log of what occurred, and comments that were written to incidents.

    `clock` has the true time. The SIEM's own is ahead of it by `skew`, which may change at any
    time; `changed_at` and `created_at` are stamped by it.
    """

    def __init__(self, clock: Clock, skew: timedelta = timedelta(0)) -> None:
        self.clock = clock
        self.skew = skew
        self.poisoned: set[str] = set()
        """The ids of incidents that break every list that they would be in."""
        self._versions: dict[str, list[Case]] = {}
        self._timeline: list[tuple[datetime, str]] = []
        self._births: list[tuple[datetime, str]] = []
        self._log: list[LogEvent] = []
        self._comments: dict[str, list[str]] = {}

    def now(self) -> datetime:
        """Return what time the SIEM has."""
        return self.clock.now() + self.skew

    def put(self, case: Case) -> Case:
        """Keep a new version, given with true times, and return it with the SIEM's.

        A version is never stamped earlier than the one before it, though the SIEM's clock may have
        been set back.
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
        """Return the latest version that the API shows, None where it shows none."""
        now = self.clock.now()
        for version in reversed(self._versions.get(identifier, ())):
            if version.visible_at is None or version.visible_at <= now:
                return self._as_shown(version, now)
        return None

    def changed(self, window: Window) -> list[Case]:
        """Return the incidents whose latest visible version changed in `window`, the oldest first.

        Those that changed at the same time are in the order of their ids.
        """
        first, last = (bisect_left(self._timeline, (end, "")) for end in (window.start, window.end))
        found = ((at, self.get(name)) for at, name in self._timeline[first:last])
        return [case for at, case in found if case is not None and case.changed_at == at]

    def created(self, window: Window) -> list[Case]:
        """Return the incidents that were created in `window`, as the API shows them, in order.

        Many vendors list by nothing else, and do not say what has changed since.
        """
        first, last = (bisect_left(self._births, (end, "")) for end in (window.start, window.end))
        found = (self.get(name) for _, name in self._births[first:last])
        return [case for case in found if case is not None]

    def versions(self, window: Window) -> list[Case]:
        """Return every version that was stamped in `window` and that the API shows, in order.

        It is what a vendor has who writes a new record where others change the old one.
        """
        now = self.clock.now()
        first, last = (bisect_left(self._timeline, (end, "")) for end in (window.start, window.end))
        stamped = (
            next(it for it in self._versions[name] if it.changed_at == at)
            for at, name in self._timeline[first:last]
        )
        shown = (it for it in stamped if it.visible_at is None or it.visible_at <= now)
        return [self._as_shown(it, now) for it in shown]

    def log(self, occurrence: LogEvent) -> LogEvent:
        """Keep what occurred, given with the true time, and return it with the SIEM's."""
        kept = replace(occurrence, occurred_at=occurrence.occurred_at + self.skew)
        insort(self._log, kept, key=_occurred_at)
        return kept

    def logged(self, window: Window, entity: Entity) -> list[LogEvent]:
        """Return what occurred in a window and has to do with an entity, the latest first."""
        ends = (window.start, window.end)
        first, last = (bisect_left(self._log, end, key=_occurred_at) for end in ends)
        return [it for it in reversed(self._log[first:last]) if entity in it.entities]

    def comment(self, identifier: str, text: str) -> None:
        """Keep a comment to an incident."""
        self._comments.setdefault(identifier, []).append(text)

    def comments(self, identifier: str) -> list[str]:
        """Return the comments to an incident, in the order in which they were written."""
        return list(self._comments.get(identifier, ()))

    def truth(self) -> dict[str, Case]:
        """Return, by id, the latest version of every incident, as if all of it had become visible.

        Incidents whose latest version is malformed are left out: `unreadable` has them.
        """
        return {case.id: case for case in self._latest() if not case.malformed}

    def unreadable(self) -> dict[str, Case]:
        """Return, by id, the incidents whose latest version is malformed."""
        return {case.id: case for case in self._latest() if case.malformed}

    def _latest(self) -> Sequence[Case]:
        return [versions[-1] for versions in self._versions.values()]

    def _as_shown(self, case: Case, now: datetime) -> Case:
        is_late = case.entities_at is not None and case.entities_at > now
        return replace(case, entities=()) if is_late else case


def _occurred_at(occurrence: LogEvent) -> datetime:
    return occurrence.occurred_at
