"""Base of provider test harnesses and conformance suites."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
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
    """What a lab is told by a suite."""

    provider: ClassVar[type[Provider]]

    def external_id(self, case: Case) -> str:
        """Return the `external_id` that the provider gives a case."""
        ...

    def is_version(self, incident: Incident, case: Case) -> bool:
        """Return whether an incident says what this version of a case says."""
        ...

    def malformed(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return a record of which nothing can be understood."""
        ...


class Harness(ABC):
    """One try; `async with` makes ready and clears away.

    `put` gives the SIEM an incident, `arrive` has the provider bring all that there is, and `store`
    then has it, as the core would.
    """

    def __init__(self, suite: HarnessSuite, now: datetime | None = None) -> None:
        self.suite = suite
        self.clock = ManualClock() if now is None else ManualClock(now)
        self.siem = Siem(self.clock)
        self.store = ReaderStore()
        self.alter: Alteration = unchanged
        """What is done to each record before the provider is shown it, and"""
        self.altered: dict[str, Alteration] = {}
        """by the id of its case, to some."""
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

    # what each kind of suite says

    @abstractmethod
    def settings(self) -> Mapping[str, Any]:
        """Return the settings of the provider that is tried out."""

    @abstractmethod
    def render(self, case: Case) -> dict[str, Any]:
        """Return the record of a case, as the vendor writes it."""

    @abstractmethod
    async def arrive(self) -> None:
        """Have everything that the SIEM has by now be stored."""

    async def persist(self) -> None:
        """Have everything be stored, though it may take several reads of which some fail."""
        await self.arrive()

    # what rules use

    def show(self, case: Case) -> dict[str, Any]:
        """Return what the provider is shown of a case."""
        record = self.altered.get(case.id, self.alter)(self.render(case))
        return self.suite.malformed(record) if case.malformed else record

    def checked_settings(self, **changes: Any) -> Any:
        """Return the provider's settings, with some changed; ValidationError as pydantic has it."""
        return make_settings(self.suite.provider, NAME, **{**self.settings(), **changes})

    async def open(self, **changes: Any) -> Provider:
        """Return another provider, which remembers nothing, with these settings changed."""
        kind = self.suite.provider
        if lacking := sorted(getattr(kind, "__abstractmethods__", ())):
            raise RuleViolation(f"{kind.__name__} cannot be made: it lacks {', '.join(lacking)}")
        provider = kind(self.checked_settings(**changes), self.tools)
        await provider.start()
        return provider

    @property
    def tools(self) -> Tools:
        """What the provider is handed."""
        bound = structlog.make_filtering_bound_logger(0)
        log = structlog.wrap_logger(None, [self.logged], wrapper_class=bound)
        http: HttpClient = self.http
        return Tools(name=NAME, http=http, clock=self.clock, log=log)

    @property
    def reader(self) -> PageReader:
        """Return what reads the provider into the store."""
        return PageReader(self.provider, self.store)

    async def restart(self, **changes: Any) -> None:
        """Have the process begin anew: what was stored is kept, and nothing else."""
        self.provider = await self.open(**changes)

    def case(self, **parts: Any) -> Case:
        """Return a new case of this moment."""
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
        """Give the SIEM a version of an incident, and return it with the SIEM's times."""
        return self.siem.put(case)

    def put(self, **parts: Any) -> Case:
        """Give the SIEM a new incident of this moment, and return it."""
        return self.keep(self.case(**parts))

    def change(self, case: Case, **parts: Any) -> Case:
        """Give the SIEM a version of this moment of an incident, and return it."""
        return self.keep(replace(case, changed_at=self.clock.now(), **parts))

    def log(self, entity: Entity, **parts: Any) -> LogEvent:
        """Have the SIEM log something of this moment that has to do with an entity."""
        self._count += 1
        given: dict[str, Any] = {
            "id": str(_FIRST_NUMBER + self._count),
            "occurred_at": self.clock.now(),
            "entities": (entity,),
            "text": "a connection was made",
        }
        return self.keep_log_event(LogEvent(**(given | parts)))

    def keep_log_event(self, occurrence: LogEvent) -> LogEvent:
        """Have the SIEM log something, and return it with the SIEM's time."""
        return self.siem.log(occurrence)

    def put_many(self, count: int, *, every: timedelta = _SECOND, **parts: Any) -> list[Case]:
        """Give the SIEM so many incidents, one each second or less often."""
        cases = []
        for _ in range(count):
            cases.append(self.put(**parts))
            self.clock.advance(seconds=every.total_seconds())
        return cases

    def differing(self, what: str, **parts: Any) -> list[Place]:
        """Return where a record says what `parts` say; skip the rule where it says it nowhere."""
        case = self.case()
        for name, value in parts.items():
            other = replace(case, **{name: value})
            if places := differences(self.render(case), self.render(other)):
                return places
        return does_not_apply(f"its records, as the simulator shows them, do not say {what}")

    # what rules expect

    def incident(self, case: Case) -> Incident:
        """Return the incident of a case, as it is stored."""
        incident = self.store.incidents.get(self.suite.external_id(case))
        if incident is None:
            raise RuleViolation(f"incident {case.id} never came{self._instead()}")
        return incident

    def expect_all(self, *, but: Case | None = None) -> None:
        """Return where every incident, but perhaps one, is stored with its latest version."""
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
            not missing, f"{len(missing)} of {total} incidents never came: {_shorten_list(missing)}"
        )
        expect(
            not stale,
            f"{len(stale)} of {total} are not their latest version: {_shorten_list(stale)}",
        )

    def _instead(self) -> str:
        if self.store.rejected:
            return f"; rejected were: {_shorten_list([it.reason for it in self.store.rejected])}"
        return f"; there are: {_shorten_list(list(self.store.incidents)) or 'none'}"


def _shorten_list(names: list[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")  # noqa: PLR2004


class Conformance(ABC):
    """A suite of contract tests; derive from one of its kinds and say which provider is meant."""

    provider: ClassVar[type[Provider]]
    severities: ClassVar[Sequence[Severity]] = tuple(Severity)
    """The severities that the vendor tells apart."""
    statuses: ClassVar[Sequence[IncidentStatus]] = tuple(IncidentStatus)
    """The statuses that the vendor tells apart."""

    def external_id(self, case: Case) -> str:
        """Return the `external_id` that the provider gives a case: its id."""
        return case.id

    def is_version(self, incident: Incident, case: Case) -> bool:
        """Return whether an incident says what this version of a case says: by title and status."""
        return (incident.title, incident.status) == (case.title, case.status)

    def malformed(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return a record of which nothing can be understood but, perhaps, of what kind it is."""
        return {name: {"unexpected": value} for name, value in record.items()}

    @abstractmethod
    def harness(self) -> Harness:
        """Return where the provider is tried out."""
