"""A provider that reads a `Siem` without a network between them, and what it brings."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from datetime import timedelta
from typing import Any

import pytest

from tocsin import Broken, Health, Incident, Listing, Refused, Severity, Window, WindowedProvider
from tocsin.testing import Case, ManualClock, Siem, make_settings, make_tools


class Shelf(WindowedProvider):
    """Lists what a `Siem` shows, three at a time; a page token is the number of pages before it."""

    page_size = 3

    def __init__(self, settings, tools, siem: Siem) -> None:
        super().__init__(settings, tools)
        self.siem = siem
        self.asked: list[tuple[Window, Any, int]] = []
        self.script: list[Exception | None] = []
        """What the next requests meet."""
        self.tells_time = True
        self.generation = 0
        """Page tokens of an earlier one have expired."""
        self.between: Callable[[], None] = lambda: None

    async def check(self) -> Health:
        return Health(detail="there")

    async def list_changes(self, stream, window, token, limit):
        self.between()
        self.asked.append((window, token, limit))
        if self.script and (error := self.script.pop(0)):
            raise error
        cases, start = self.siem.changed(window), 0
        if token is not None:
            if token["generation"] != self.generation:
                raise Refused("the page token has expired", status=400)
            start = sum([case.changed_at.isoformat(), case.id] <= token["after"] for case in cases)
        page = cases[start : start + limit]
        if any(case.id in self.siem.poisoned for case in page):
            raise Broken("500")
        more = start + limit < len(cases)
        after = [page[-1].changed_at.isoformat(), page[-1].id] if more else None
        return Listing(
            records=[record_of(case) for case in page],
            next_token={"after": after, "generation": self.generation} if more else None,
            server_time=self.siem.now() if self.tells_time else None,
        )

    def to_incident(self, record):
        if record["malformed"]:
            raise ValueError("it is malformed")
        case = record["case"]
        return Incident(
            external_id=case["id"],
            title=case["title"],
            severity=Severity.HIGH,
            occurred_at=moment(case["created_at"]),
            changed_at=moment(case["changed_at"]),
        )


def record_of(case: Case) -> dict[str, Any]:
    times = {"created_at": case.created_at.isoformat(), "changed_at": case.changed_at.isoformat()}
    return {"case": {"id": case.id, "title": case.title, **times}, "malformed": case.malformed}


def moment(text: str):
    from datetime import datetime

    return datetime.fromisoformat(text)


class Reading:
    """Stores what a provider brings as the engine would, and starts it anew when told."""

    def __init__(self, clock: ManualClock, siem: Siem, **settings: Any) -> None:
        self.clock = clock
        self.siem = siem
        self.position = None
        self.incidents: list[Incident] = []
        self.rejected: list[Any] = []
        self.incomplete: list[str] = []
        self.covered: list[Any] = []
        self._settings = {"poll_interval": "1m"} | settings
        self.restart()

    def restart(self) -> None:
        """Forget all but the stored position."""
        settings = make_settings(Shelf, "shelf", **self._settings)
        self.provider = Shelf(settings, make_tools(None, "shelf", self.clock), self.siem)

    async def read(self, most: int | None = None) -> list[str]:
        """Read on, `most` pages at most, and return the ids of what came."""
        pages = self.provider.read("changed", self.position, self.clock.now())
        return await self._store(pages, most)

    async def _store(self, reading, most) -> list[str]:
        before = len(self.incidents)
        async with aclosing(reading) as pages:
            count = 0
            async for page in pages:
                self.position = page.next_position
                self.incidents += page.incidents
                self.rejected += page.rejected
                self.incomplete += page.incomplete
                self.covered += page.covered
                count += 1
                if count == most:
                    break
        return [incident.external_id for incident in self.incidents[before:]]

    @property
    def latest(self) -> dict[str, str]:
        """The title of the latest version of each incident, by id."""
        ordered = sorted(self.incidents, key=lambda incident: incident.changed_at)
        return {incident.external_id: incident.title for incident in ordered}

    @property
    def lost(self) -> list[Any]:
        return [stretch for stretch in self.covered if stretch.lost]

    @property
    def spans(self) -> list[tuple[Any, Any]]:
        """The stretches that are accounted for, without those of no length."""
        return [(span.start, span.end) for span in self.covered if span.end > span.start]


class World:
    """A clock, a SIEM, and someone who puts incidents there."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.siem = Siem(clock)

    def put(self, name: str, title: str = "first", *, ago: float = 60, **parts: Any) -> Case:
        """Have an incident change so many seconds ago."""
        changed_at = self.clock.now() - timedelta(seconds=ago)
        times = {"created_at": changed_at, "changed_at": changed_at}
        case = Case(id=name, number=1, title=title, severity=Severity.HIGH, **times | parts)
        return self.siem.put(case)

    def reading(self, **settings: Any) -> Reading:
        return Reading(self.clock, self.siem, **settings)


@pytest.fixture
def world(clock) -> World:
    return World(clock)
