"""Scenarios for objects at a receiver, and their expected results."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar, TypeAlias

from tocsin.model import Event
from tocsin.testing.conformance.channel_harness import ADDRESSES, ChannelHarness, ChannelSuite
from tocsin.testing.receiver import RemoteObject

ChannelScenario: TypeAlias = Callable[[ChannelHarness], Awaitable[Event]]
"""Brings what happened before, and returns the event that is tried out."""
ObjectShape: TypeAlias = tuple[list[str], int, bool]
"""An object's observables, how many notes it has, and whether it is open."""
NEW_OBJECT: ObjectShape = (sorted(ADDRESSES), 0, True)


async def _alert(lab: ChannelHarness) -> Event:
    return lab.alert()


async def _report(lab: ChannelHarness) -> Event:
    await lab.bring(lab.alert())
    return lab.completed("incident:7")


async def _own_report(lab: ChannelHarness) -> Event:
    return lab.completed()


async def _second_failure(lab: ChannelHarness) -> Event:
    await lab.bring(lab.failed(1))
    return lab.failed(2)


async def _closing_report(lab: ChannelHarness) -> Event:
    lab.use(close_when="context.report.verdict == 'malicious'")
    await lab.bring(lab.alert())
    return lab.completed("incident:7")


async def _recovery(lab: ChannelHarness) -> Event:
    lab.use(close_recovered=True)
    await lab.bring(lab.failed(1))
    return lab.completed()


async def closed_failure(lab: ChannelHarness) -> None:
    """Leave one object, of a failure, which is closed."""
    lab.use(close_when="data.consecutive_failures == 1")
    await lab.bring(lab.failed(1))


async def _failure_after_closing(lab: ChannelHarness) -> Event:
    await closed_failure(lab)
    return lab.failed(2)


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
    """What rules stand on that try out stories."""

    scenarios: ClassVar[Sequence[ChannelScenario]] = SCENARIOS
    """What is tried out with every fault at every request; say fewer of a receiver that is slow."""

    async def count_steps(self, story: ChannelScenario) -> tuple[int, list[ObjectShape]]:
        """Return how many requests a story's event takes, and what is there in the end."""
        async with self.harness() as lab:
            event = await story(lab)
            before = len(lab.simulator.requests)
            await lab.bring(event)
            return len(lab.simulator.requests) - before, object_shapes(lab)


def object_shapes(lab: ChannelHarness) -> list[ObjectShape]:
    """Return what is at the receiver's."""
    return [_object_shape(object_) for object_ in lab.objects]


def count_notes(lab: ChannelHarness) -> list[int]:
    """Return how many notes each object has."""
    return [len(object_.notes) for object_ in lab.objects]


def count_event_notes(event: Event, found: RemoteObject) -> int:
    """Return how many notes of an object name an event."""
    return sum(event.id in note for note in found.notes)


def _object_shape(found: RemoteObject) -> ObjectShape:
    return sorted(found.observables), len(found.notes), found.is_open
