"""Scenarios for objects at a receiver, and their expected results."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar, TypeAlias

from tocsin.model import Event
from tocsin.testing.conformance.channel_harness import ADDRESSES, ChannelHarness, ChannelSuite
from tocsin.testing.receiver import RemoteObject

ChannelScenario: TypeAlias = Callable[[ChannelHarness], Awaitable[Event]]
"""Delivers earlier events, and returns the event under test."""
ObjectShape: TypeAlias = tuple[list[str], int, bool]
"""An object's observables, its number of notes, and whether it is open."""
NEW_OBJECT: ObjectShape = (sorted(ADDRESSES), 0, True)


async def _alert(harness: ChannelHarness) -> Event:
    return harness.alert()


async def _report(harness: ChannelHarness) -> Event:
    await harness.bring(harness.alert())
    return harness.completed("incident:7")


async def _own_report(harness: ChannelHarness) -> Event:
    return harness.completed()


async def _second_failure(harness: ChannelHarness) -> Event:
    await harness.bring(harness.failed(1))
    return harness.failed(2)


async def _closing_report(harness: ChannelHarness) -> Event:
    harness.use(close_when="context.report.verdict == 'malicious'")
    await harness.bring(harness.alert())
    return harness.completed("incident:7")


async def _recovery(harness: ChannelHarness) -> Event:
    harness.use(close_recovered=True)
    await harness.bring(harness.failed(1))
    return harness.completed()


async def closed_failure(harness: ChannelHarness) -> None:
    """Create one object for a failure, and close it."""
    harness.use(close_when="data.consecutive_failures == 1")
    await harness.bring(harness.failed(1))


async def _failure_after_closing(harness: ChannelHarness) -> Event:
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


class ScenarioSuite(ChannelSuite):
    """Base of rules that run scenarios."""

    scenarios: ClassVar[Sequence[ChannelScenario]] = SCENARIOS
    """The scenarios that run with every fault at every request; list fewer for a slow receiver."""

    async def count_steps(self, story: ChannelScenario) -> tuple[int, list[ObjectShape]]:
        """Return the number of requests for a scenario's event, and the resulting objects."""
        async with self.harness() as harness:
            event = await story(harness)
            before = len(harness.simulator.requests)
            await harness.bring(event)
            return len(harness.simulator.requests) - before, object_shapes(harness)


def object_shapes(harness: ChannelHarness) -> list[ObjectShape]:
    """Return the shapes of the objects at the receiver."""
    return [_object_shape(remote) for remote in harness.objects]


def count_notes(harness: ChannelHarness) -> list[int]:
    """Return the number of notes of each object."""
    return [len(remote.notes) for remote in harness.objects]


def count_event_notes(event: Event, found: RemoteObject) -> int:
    """Return the number of an object's notes that name an event."""
    return sum(event.id in note for note in found.notes)


def _object_shape(found: RemoteObject) -> ObjectShape:
    return sorted(found.observables), len(found.notes), found.is_open
