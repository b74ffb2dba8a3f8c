"""Scenarios for objects at a receiver, and their expected results."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar, TypeAlias

from tocsin.model import Event
from tocsin.testing.conformance.object_channel_harness import (
    ADDRESSES,
    ObjectChannelHarness,
    ObjectChannelSuite,
)
from tocsin.testing.receiver import RemoteObject

ChannelScenario: TypeAlias = Callable[[ObjectChannelHarness], Awaitable[Event]]
"""Delivers earlier events, and returns the event under test."""
ObjectShape: TypeAlias = tuple[list[str], int, bool]
"""An object's observables, its number of notes, and whether it is open."""
NEW_OBJECT: ObjectShape = (sorted(ADDRESSES), 0, True)


async def _alert(harness: ObjectChannelHarness) -> Event:
    return harness.alert()


async def _report(harness: ObjectChannelHarness) -> Event:
    await harness.bring(harness.alert())
    return harness.completed("incident:7")


async def _own_report(harness: ObjectChannelHarness) -> Event:
    return harness.completed()


async def _second_failure(harness: ObjectChannelHarness) -> Event:
    await harness.bring(harness.failed(1))
    return harness.failed(2)


async def _closing_report(harness: ObjectChannelHarness) -> Event:
    harness.use(close_when="context.report.verdict == 'malicious'")
    await harness.bring(harness.alert())
    return harness.completed("incident:7")


async def _recovery(harness: ObjectChannelHarness) -> Event:
    harness.use(close_recovered=True)
    await harness.bring(harness.failed(1))
    return harness.completed()


async def closed_failure(harness: ObjectChannelHarness) -> None:
    """Create one object for a failure, and close it."""
    harness.use(close_when="data.consecutive_failures == 1")
    await harness.bring(harness.failed(1))


async def _failure_after_closing(harness: ObjectChannelHarness) -> Event:
    await closed_failure(harness)
    return harness.failed(2)


SCENARIOS: Sequence[ChannelScenario] = (
    _alert,
    _report,
    _own_report,
    _second_failure,
    _closing_report,
    _recovery,
    _failure_after_closing,
)


class ScenarioSuite(ObjectChannelSuite):
    """Base of rules that run scenarios."""

    scenarios: ClassVar[Sequence[ChannelScenario]] = SCENARIOS
    """The scenarios that the suite runs with every fault at every request; list fewer if this is
    slow."""

    async def count_steps(self, story: ChannelScenario) -> tuple[int, list[ObjectShape]]:
        """Return the number of requests for a scenario's event, and the resulting objects."""
        async with self.harness() as harness:
            event = await story(harness)
            before = len(harness.simulator.requests)
            await harness.bring(event)
            return len(harness.simulator.requests) - before, object_shapes(harness)


def object_shapes(harness: ObjectChannelHarness) -> list[ObjectShape]:
    """Return the shapes of the objects at the receiver."""
    return [_object_shape(remote) for remote in harness.objects]


def count_notes(harness: ObjectChannelHarness) -> list[int]:
    """Return the number of notes of each object."""
    return [len(remote.notes) for remote in harness.objects]


def count_event_notes(event: Event, found: RemoteObject) -> int:
    """Return the number of an object's notes that name an event."""
    return sum(event.id in note for note in found.notes)


def _object_shape(found: RemoteObject) -> ObjectShape:
    return sorted(found.observables), len(found.notes), found.is_open
