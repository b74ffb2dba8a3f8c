"""Seeded scenario: changes and faults in a SIEM over time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from random import Random
from typing import Any

from tocsin.model import Entity, EntityKind, IncidentStatus, Severity
from tocsin.testing.faults import Fault
from tocsin.testing.siem import Case
from tocsin.testing.simulator import Simulator

LATEST_ARRIVAL = timedelta(minutes=5)
"""The longest delay before the API shows a change."""
LATEST_ENTITIES = timedelta(minutes=20)
"""The longest delay before the API shows the entities of a new incident."""
CHANGES_A_FAULT = 5_000
"""The number of changes for one occurrence of every fault; each occurs at least twice."""

HOSTILE = (
    "<script>alert(1)</script>",
    "{{ 7 * 7 }} {% for x in y %}",
    "'; DROP TABLE incidents; --",
    "invoice\u202egnp.exe",
    "a NUL \x00 inside",
    "two\nlines,\ta tab",
    '"quoted" \\ and \\u0000 spelt out',
    "=HYPERLINK('http://example.com')",
    "${jndi:ldap://example.com/x} %s %n",
    "колокол \N{BELL} 鐘 e\N{COMBINING ACUTE ACCENT}",
    "much " * 2_000,
)
"""Hostile titles that break careless software."""
_TITLES = ("Password spray", "Beaconing to a rare domain", "Malware found", "Impossible travel")
_HOSTILE_IDS = ("{}/..?x=1#y", "{} with spaces", "{}&limit=0", "{}-ü%2F")
_UNKNOWN_SEVERITIES = ("sev-11", "Fatal?", "P1")
_SKEWS = (timedelta(minutes=4), timedelta(minutes=-3), timedelta(0))
_POISONED_FOR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class ScheduledFault:
    """A fault that a scenario injects at a certain time."""

    at: datetime
    fault: Fault | None = None
    """How the next request fails, if it does."""
    skew: timedelta | None = None
    """By how much the SIEM's clock is ahead from now on, if that changes."""
    poisons: bool = False
    """Whether, for an hour, every page fails that contains the incident that changes next."""


class Scenario:
    """A sequence of changes in a SIEM, beginning at `start`.

    The same seed produces the same sequence. Incidents appear, change, escalate, close and merge.
    Some incidents arrive in bursts with the same timestamp, some become visible late, some get
    their entities later, and some are malformed. Some titles and IDs are hostile. The attribute
    `mishaps` lists the faults.
    """

    def __init__(
        self,
        start: datetime,
        *,
        seed: int = 0,
        changes: int = 500,
        length: timedelta = timedelta(hours=24),
    ) -> None:
        self.start = start
        self.end = start + length
        self.settled_at = self.end + LATEST_ENTITIES
        """The time at which everything is visible."""
        random = Random(seed)  # noqa: S311 - a story, not a secret
        self.cases = tuple(_Generator(random, start, length).tell(changes))
        """Every version of every incident, with true times, the oldest first."""
        self.mishaps = tuple(_plan_faults(random, start, length, changes))
        self._cases = deque(self.cases)
        self._mishaps = deque(self.mishaps)
        self._healing: deque[tuple[datetime, str]] = deque()
        self._poisons = False

    def due(self, now: datetime) -> list[Case]:
        """Return the changes up to `now` that this method has not returned before."""
        due = []
        while self._cases and self._cases[0].changed_at <= now:
            due.append(self._cases.popleft())
        return due

    def play(self, simulator: Simulator) -> None:
        """Apply all due changes and faults to a simulator."""
        now = simulator.siem.clock.now()
        while self._mishaps and self._mishaps[0].at <= now:
            self._go_wrong(self._mishaps.popleft(), simulator)
        for case in self.due(now):
            simulator.siem.put(case)
            if self._poisons and not case.malformed:
                self._poisons = False
                simulator.siem.poisoned.add(case.id)
                self._healing.append((now + _POISONED_FOR, case.id))
        while self._healing and self._healing[0][0] <= now:
            simulator.siem.poisoned.discard(self._healing.popleft()[1])

    def _go_wrong(self, mishap: ScheduledFault, simulator: Simulator) -> None:
        if mishap.fault is not None:
            simulator.fail(mishap.fault)
        if mishap.skew is not None:
            simulator.siem.skew = mishap.skew
        self._poisons = self._poisons or mishap.poisons


def _plan_faults(
    random: Random, start: datetime, length: timedelta, changes: int
) -> list[ScheduledFault]:
    """Return the faults of the scenario; its last hour has none."""
    until = length - timedelta(hours=1)

    def moment() -> datetime:
        return start + until * random.random()

    times = max(2, changes // CHANGES_A_FAULT)
    faults = [ScheduledFault(moment(), fault=fault) for fault in Fault for _ in range(times)]
    skews = [
        ScheduledFault(start + until * (place + 1) / (len(_SKEWS) + 1), skew=skew)
        for place, skew in enumerate(_SKEWS)
    ]
    poisons = [ScheduledFault(moment(), poisons=True) for _ in range(4)]
    return sorted([*faults, *skews, *poisons], key=lambda mishap: mishap.at)


class _Generator:
    """Generates changes one after the other."""

    def __init__(self, random: Random, start: datetime, length: timedelta) -> None:
        self._random = random
        self._start = start
        self._length = length
        self._now: dict[str, Case] = {}
        self._ids: list[str] = []

    def tell(self, changes: int) -> Iterator[Case]:
        """Yield this many changes, the oldest first."""
        moments = deque(sorted(self._moment() for _ in range(changes)))
        while moments:
            moment = moments.popleft()
            if self._ids and self._chance(0.5):
                yield self._keep(self._changed(self._any(), moment))
            else:
                yield self._keep(self._new(moment))
                if self._chance(0.02):  # a burst
                    for _ in range(min(len(moments), self._random.randint(20, 150))):
                        moments.popleft()
                        yield self._keep(self._new(moment, at_once=True))

    def _new(self, moment: datetime, *, at_once: bool = False) -> Case:
        number = len(self._ids) + 1
        identifier = f"c-{number}"
        if self._chance(0.03):
            identifier = self._random.choice(_HOSTILE_IDS).format(identifier)
        return Case(
            id=identifier,
            number=number,
            title=self._random.choice(HOSTILE if self._chance(0.1) else _TITLES),
            description=self._random.choice(("", "Seen on several hosts.", *HOSTILE)),
            severity=self._severity(),
            created_at=moment,
            changed_at=moment,
            visible_at=None if at_once else self._late(moment, 0.05, LATEST_ARRIVAL),
            entities=self._entities(),
            entities_at=self._late(moment, 0.1, LATEST_ENTITIES),
            malformed=self._chance(0.02),
        )

    def _changed(self, case: Case, moment: datetime) -> Case:
        return replace(
            case,
            changed_at=moment,
            visible_at=self._late(moment, 0.05, LATEST_ARRIVAL),
            malformed=case.malformed and self._chance(0.5),
            **self._change(case, moment),
        )

    def _change(self, case: Case, moment: datetime) -> dict[str, Any]:
        """Return the fields that change; only the title of a merged incident changes."""
        changes: list[dict[str, Any]] = [
            {"title": f"{self._random.choice(_TITLES)} at {moment:%H:%M:%S}"},
            {"merged_into": self._any().id, "status": IncidentStatus.CLOSED},
            {"status": IncidentStatus.ACTIVE},
            {"status": IncidentStatus.CLOSED},
            {"severity": Severity.CRITICAL},
            {"entities": (*case.entities, *self._entities())},
        ]
        change = self._random.choice(changes)
        return changes[0] if case.merged_into or change.get("merged_into") == case.id else change

    def _keep(self, case: Case) -> Case:
        if case.id not in self._now:
            self._ids.append(case.id)
        self._now[case.id] = case
        return case

    def _any(self) -> Case:
        """Return an incident, with a preference for recent ones."""
        last = len(self._ids) - 1
        place = last - min(last, int(self._random.expovariate(1 / 40)))
        return self._now[self._ids[place]]

    def _severity(self) -> Severity | str:
        severities = _UNKNOWN_SEVERITIES if self._chance(0.05) else tuple(Severity)
        return self._random.choice(severities)

    def _entities(self) -> tuple[Entity, ...]:
        number = self._random.randrange(1, 250)
        choices = (
            Entity(EntityKind.IP, f"192.0.2.{number}"),
            Entity(EntityKind.HOST, f"host-{number}"),
            Entity(EntityKind.USER, f"user{number}"),
            Entity(EntityKind.DOMAIN, f"d{number}.example.com"),
        )
        return tuple(self._random.sample(choices, self._random.randrange(4)))

    def _moment(self) -> datetime:
        return self._start + self._length * self._random.random()

    def _late(self, moment: datetime, chance: float, latest: timedelta) -> datetime | None:
        return moment + latest * self._random.random() if self._chance(chance) else None

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability
