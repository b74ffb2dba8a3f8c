"""Base of provider test harnesses and conformance suites."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Protocol, Self

import structlog
from structlog.testing import LogCapture

from tocsin.hookspecs import HttpClient, Provider, Tools
from tocsin.model import Entity, EntityKind, Incident, IncidentStatus, Severity
from tocsin.testing.clock import ManualClock
from tocsin.testing.conformance.client import RecordingClient
from tocsin.testing.conformance.event_loop import EventLoopRules
from tocsin.testing.conformance.page_reader import PageReader, ReaderStore
from tocsin.testing.conformance.record_shapes import Alteration, differences, unchanged
from tocsin.testing.conformance.record_shapes import Path as Place
from tocsin.testing.conformance.rules import RuleViolation, does_not_apply, expect
from tocsin.testing.siem import Case, LogEvent, Siem
from tocsin.testing.tools import make_settings

NAME = "conformance"
_FIRST_NUMBER = 1001
_SECOND = timedelta(seconds=1)


class HarnessSuite(Protocol):
    """The parts of a suite that a harness uses."""

    provider: ClassVar[type[Provider]]

    def external_id(self, case: Case) -> str:
        """Return the `external_id` that the provider gives a case."""
        ...

    def is_version(self, incident: Incident, case: Case) -> bool:
        """Return whether an incident represents this version of a case."""
        ...

    def malformed(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return a record that cannot be parsed."""
        ...


class Harness(ABC):
    """One test run of a provider; `async with` sets it up and cleans up.

    `put` adds an incident to the SIEM, `arrive` makes the provider read everything, and `store`
    then holds it as the core would.
    """

    def __init__(self, suite: HarnessSuite, now: datetime | None = None) -> None:
        self.suite = suite
        self.clock = ManualClock() if now is None else ManualClock(now)
        self.siem = Siem(self.clock)
        self.store = ReaderStore()
        self.alter: Alteration = unchanged
        """A change that is applied to each record before the provider sees it."""
        self.altered: dict[str, Alteration] = {}
        """Changes to the records of some cases, by ID."""
        self.logged = LogCapture()
        self._count = 0
        self._folder = TemporaryDirectory(prefix="tocsin-conformance-")
        self.folder = Path(self._folder.name)

    async def __aenter__(self) -> Self:
        self.http = RecordingClient()
        self.provider = await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.http.close()
        self._folder.cleanup()

    # implemented by each kind of suite

    @abstractmethod
    def settings(self) -> Mapping[str, Any]:
        """Return the settings of the provider under test."""

    @abstractmethod
    def render(self, case: Case) -> dict[str, Any]:
        """Return the record of a case, as the vendor writes it."""

    @abstractmethod
    async def arrive(self) -> None:
        """Store everything that the SIEM has."""

    async def persist(self) -> None:
        """Store everything, even if several reads are needed and some of them fail."""
        await self.arrive()

    # used by rules

    def show(self, case: Case) -> dict[str, Any]:
        """Return the record of a case as the provider sees it."""
        record = self.altered.get(case.id, self.alter)(self.render(case))
        return self.suite.malformed(record) if case.malformed else record

    def checked_settings(self, **changes: Any) -> Any:
        """Return the provider's validated settings, with some changed; raises ValidationError."""
        return make_settings(self.suite.provider, NAME, **{**self.settings(), **changes})

    async def open(self, **changes: Any) -> Provider:
        """Return a new provider, which remembers nothing, with these settings changed."""
        kind = self.suite.provider
        if lacking := sorted(getattr(kind, "__abstractmethods__", ())):
            raise RuleViolation(f"{kind.__name__} is abstract: it lacks {', '.join(lacking)}")
        provider = kind(self.checked_settings(**changes), self.tools)
        await provider.start()
        return provider

    @property
    def tools(self) -> Tools:
        """The tools that the provider receives."""
        bound = structlog.make_filtering_bound_logger(0)
        log = structlog.wrap_logger(None, [self.logged], wrapper_class=bound)
        http: HttpClient = self.http
        return Tools(name=NAME, http=http, clock=self.clock, log=log)

    @property
    def reader(self) -> PageReader:
        """A reader from the provider into the store."""
        return PageReader(self.provider, self.store)

    async def restart(self, **changes: Any) -> None:
        """Simulate a new process: only stored data survives."""
        self.provider = await self.open(**changes)

    def case(self, **parts: Any) -> Case:
        """Return a new case with the current time."""
        number = _FIRST_NUMBER + self._count
        self._count += 1
        now = self.clock.now()
        given: dict[str, Any] = {
            "id": str(number),
            "number": number,
            "title": f"Password spray {number}",
            "severity": Severity.HIGH,
            "created_at": parts.get("changed_at", now),
            "changed_at": now,
            "entities": (Entity(EntityKind.IP, f"192.0.2.{number % 250 + 1}"),),
        }
        return Case(**(given | parts))

    def keep(self, case: Case) -> Case:
        """Add a version of an incident to the SIEM, and return it with the SIEM's times."""
        return self.siem.put(case)

    def put(self, **parts: Any) -> Case:
        """Add a new incident to the SIEM, and return it."""
        return self.keep(self.case(**parts))

    def change(self, case: Case, **parts: Any) -> Case:
        """Add a new version of an incident to the SIEM, and return it."""
        return self.keep(replace(case, changed_at=self.clock.now(), **parts))

    def log(self, entity: Entity, **parts: Any) -> LogEvent:
        """Add a log event about an entity to the SIEM."""
        self._count += 1
        given: dict[str, Any] = {
            "id": str(_FIRST_NUMBER + self._count),
            "occurred_at": self.clock.now(),
            "entities": (entity,),
            "text": "a connection was made",
        }
        return self.keep_log_event(LogEvent(**(given | parts)))

    def keep_log_event(self, log_event: LogEvent) -> LogEvent:
        """Add a log event to the SIEM, and return it with the SIEM's time."""
        return self.siem.log(log_event)

    def put_many(self, count: int, *, every: timedelta = _SECOND, **parts: Any) -> list[Case]:
        """Add this many incidents to the SIEM, by default one each second."""
        cases = []
        for _ in range(count):
            cases.append(self.put(**parts))
            self.clock.advance(seconds=every.total_seconds())
        return cases

    def differing(self, what: str, **parts: Any) -> list[Place]:
        """Return the paths of a record that show `parts`; skip the rule if there are none."""
        case = self.case()
        for name, value in parts.items():
            other = replace(case, **{name: value})
            if places := differences(self.render(case), self.render(other)):
                return places
        return does_not_apply(f"the simulator's records do not show {what}")

    # expectations of rules

    def incident(self, case: Case) -> Incident:
        """Return the stored incident of a case."""
        incident = self.store.incidents.get(self.suite.external_id(case))
        if incident is None:
            raise RuleViolation(f"incident {case.id} did not arrive{self._instead()}")
        return incident

    def expect_all(self, *, but: Case | None = None) -> None:
        """Check that every incident, except `but`, is stored in its latest version."""
        missing, stale = [], []
        truth = self.siem.truth()
        if but is not None:
            del truth[but.id]
        for case in truth.values():
            incident = self.store.incidents.get(self.suite.external_id(case))
            if incident is None:
                missing.append(case.id)
            elif not self.suite.is_version(incident, case):
                stale.append(case.id)
        total = len(truth)
        expect(
            not missing,
            f"{len(missing)} of {total} incidents did not arrive: {_shorten_list(missing)}",
        )
        expect(
            not stale,
            f"{len(stale)} of {total} incidents are outdated: {_shorten_list(stale)}",
        )

    def _instead(self) -> str:
        if self.store.rejected:
            return f"; rejected: {_shorten_list([record.reason for record in self.store.rejected])}"
        return f"; stored: {_shorten_list(list(self.store.incidents)) or 'none'}"


def _shorten_list(names: list[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")  # noqa: PLR2004


class Conformance(EventLoopRules):
    """Base of conformance suites for providers; derive from one of its subclasses."""

    provider: ClassVar[type[Provider]]
    severities: ClassVar[Sequence[Severity]] = tuple(Severity)
    """The severities that the vendor distinguishes."""
    statuses: ClassVar[Sequence[IncidentStatus]] = tuple(IncidentStatus)
    """The statuses that the vendor distinguishes."""
    fills: ClassVar[Collection[str]] = ("entities",)
    """The fields of `Incident` that the provider sets in every incident, such as `changed_at` and
    `techniques`; empty if there are none.
    """

    def external_id(self, case: Case) -> str:
        """Return the `external_id` that the provider gives a case; by default, the case's ID."""
        return case.id

    def is_version(self, incident: Incident, case: Case) -> bool:
        """Return whether an incident is this version of a case, judging by title and status."""
        return (incident.title, incident.status) == (case.title, case.status)

    def malformed(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return a malformed copy of a record, which cannot be mapped to an incident.

        The default implementation replaces each value with an object.
        """
        return {name: {"unexpected": value} for name, value in record.items()}

    @abstractmethod
    def harness(self) -> Harness:
        """Return a harness for the provider."""

    async def exercise(self) -> None:
        """Read some incidents and check the connection."""
        async with self.harness() as harness:
            case, *_ = (harness.put() for _ in range(3))
            await harness.arrive()
            harness.incident(case)
            await harness.provider.check()
