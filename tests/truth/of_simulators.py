"""SIEMs with an HTTP API, whose answers go wrong in every way there is."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

from tocsin import Clock
from tocsin.testing import Scenario, Siem, Simulator
from truth.entrant import Course, Known, ReadEntrant, known_of

EXAMPLE = Path(__file__).parents[2] / "examples" / "tocsin-example-provider"
sys.path[:0] = [str(EXAMPLE / "src"), str(EXAMPLE / "tests")]

from simulator import ExampleSimulator  # noqa: E402 - of the example's own tests
from tocsin_example.provider import ExampleProvider  # noqa: E402


class OfSimulators(ReadEntrant):
    """A provider that asks a simulator."""

    @abstractmethod
    def simulate(self, day: Scenario, clock: Clock) -> Simulator:
        """Return the simulator on the morning of the day."""

    @abstractmethod
    def settings(self, simulator: Any) -> dict[str, Any]:
        """Return what the provider needs to be told."""

    @abstractmethod
    def truth(self, siem: Any) -> dict[str, Known]:
        """Return what is to be known of the incidents in a SIEM."""

    @abstractmethod
    def unreadable(self, siem: Any) -> set[bytes]:
        """Return a part of each record in a SIEM that cannot be read."""

    @asynccontextmanager
    async def begin(self, day, clock, folder) -> AsyncIterator[Course]:
        random = Random(7)
        async with self.simulate(day, clock) as simulator:
            course = Course(
                settings={"url": simulator.url, "timeout": "1s", **self.settings(simulator)},
                play=lambda: day.play(simulator),
                truth=lambda: self.truth(simulator.siem),
                unreadable=lambda: self.unreadable(simulator.siem),
            )

            def before_each() -> None:
                clock.advance(seconds=0.2)
                day.play(simulator)
                if clock.now() < day.end and random.random() < 0.005:
                    course.crash()

            simulator.before_each = before_each
            yield course


class Example(OfSimulators):
    """Acme Cases over HTTP."""

    name = "example"
    kind = ExampleProvider

    def simulate(self, day, clock) -> ExampleSimulator:
        return ExampleSimulator(Siem(clock))

    def settings(self, simulator: ExampleSimulator) -> dict[str, Any]:
        identifier, secret = simulator.client
        return {"client_id": identifier, "client_secret": secret}

    def truth(self, siem: Siem) -> dict[str, Known]:
        return {name: known_of(case) for name, case in siem.truth().items()}

    def unreadable(self, siem: Siem) -> set[bytes]:
        return {f'"unexpected":{case.number}}}'.encode() for case in siem.unreadable().values()}
