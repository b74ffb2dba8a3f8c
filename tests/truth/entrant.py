"""What it takes to live through a day: a SIEM, a node, and what must be known at the end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

from tocsin import Entity, IncidentStatus, Provider, Severity
from tocsin.events import Notifier, Notifiers
from tocsin.incidents import ProviderSync, SyncContext
from tocsin.incidents.sync.lease import acquire_lease, find_slower_streams
from tocsin.store import Database
from tocsin.testing import Case, ManualClock, Scenario, open_provider

PUBLIC_URL = "https://tocsin.example.org"

Turn = Callable[[], Awaitable[timedelta]]
"""Has a node do what there is to do, and returns how long it waits then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is to be known of one incident."""

    title: str
    severity: Severity
    status: IncidentStatus = IncidentStatus.NEW
    description: str = ""
    merged_into: str | None = None
    changed_at: datetime | None = None
    entities: frozenset[Entity] = frozenset()
    alerts: int = 0


@dataclass
class Course:
    """One day of one SIEM, under way."""

    settings: dict[str, Any]
    play: Callable[[], None]
    """Lets happen what is due."""
    truth: Callable[[], dict[str, Known]]
    """What is to be known once all is settled, by the incidents' external ids."""
    unreadable: Callable[[], set[bytes]]
    """What the quarantine is to hold: of each record that cannot be read, a part that tells it."""
    crash: Callable[[], object] = field(default=lambda: None)
    """Set by who runs the node: called now and then in the middle of a turn, which it ends."""


class Entrant(ABC):
    """A provider that lives through a day."""

    name: ClassVar[str]

    def choose(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Return those of some settings that the provider has."""
        return {}

    @abstractmethod
    def begin(self, day: Scenario, clock: ManualClock, folder: Path) -> Any:
        """Return a context manager that yields the course of the day."""

    @abstractmethod
    def open_node(
        self, course: Course, database: Database, clock: ManualClock
    ) -> AbstractAsyncContextManager[Turn]:
        """Return a context manager that yields the turn of a node that has just started."""


class ReadEntrant(Entrant):
    """A provider that is read."""

    kind: ClassVar[type[Provider]]

    def choose(self, settings: dict[str, Any]) -> dict[str, Any]:
        known = self.kind.Settings.model_fields
        return {name: value for name, value in settings.items() if name in known}

    @asynccontextmanager
    async def open_node(self, course, database, clock) -> AsyncIterator[Turn]:
        opening = open_provider(self.kind, clock=clock, name=self.name, **course.settings)
        async with opening as provider:
            notifiers = PassingNotifiers(clock, provider.settings.poll_interval / 2)
            around = SyncContext(database, clock, notifiers, PUBLIC_URL, jitter=lambda: 0.5)
            sync = ProviderSync(provider, around)
            known = self.name, provider.settings, 1, clock.now()
            slower = find_slower_streams(provider)
            await database.write(acquire_lease, *known, intervals=slower)

            async def turn() -> timedelta:
                await sync.step()
                return timedelta(0)

            yield turn


class PassingNotifiers(Notifiers):
    """Notifiers that are never notified: for each waiting task, the same time passes."""

    def __init__(self, clock: ManualClock, passing: timedelta) -> None:
        super().__init__()
        self._notifier = PassingNotifier(clock, passing)

    def __getitem__(self, topic: str) -> Notifier:
        """Return the one notifier."""
        return self._notifier


class PassingNotifier(Notifier):
    """The notifier of all topics."""

    def __init__(self, clock: ManualClock, passing: timedelta) -> None:
        super().__init__()
        self._clock = clock
        self._passing = passing

    async def wait(self, at_most: timedelta) -> None:
        """Let time pass."""
        await self._clock.sleep(self._passing)


def known_of(case: Case, **differently: Any) -> Known:
    """Return what is to be known of a case, where its provider says all of it."""
    known = {
        "title": stored(case.title),
        "description": case.description.replace("\0", "\N{REPLACEMENT CHARACTER}"),
        "severity": case.severity if isinstance(case.severity, Severity) else Severity.MEDIUM,
        "status": case.status,
        "merged_into": case.merged_into,
        "changed_at": case.changed_at,
        "entities": frozenset(case.entities),
    }
    return Known(**known | differently)


def stored(title: str) -> str:
    """Return a title as both databases hold it: without NUL, and not too long."""
    title = title.replace("\0", "\N{REPLACEMENT CHARACTER}")
    return title if len(title) <= 1_000 else title[:999] + "…"
