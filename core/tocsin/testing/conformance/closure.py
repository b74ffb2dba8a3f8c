"""Rules for closing objects."""

from __future__ import annotations

from tocsin.model import Event
from tocsin.testing.conformance.object_channel_harness import (
    ObjectChannelHarness,
    ObjectChannelSuite,
)
from tocsin.testing.conformance.rules import expect, rule
from tocsin.testing.conformance.scenarios import count_event_notes


class ClosureRules(ObjectChannelSuite):
    """Rules for when an object is closed."""

    @rule
    async def test_nothing_is_closed_by_default(self) -> None:
        """Tocsin closes objects only if an operator has configured it to do so.

        Analysts decide whether a case is finished.
        """
        async with self.harness() as harness:
            await harness.bring(harness.failed(1))
            await harness.bring(harness.alert())
            await harness.bring(harness.completed("incident:7"))
            expect(all(remote.is_open for remote in harness.objects), f"{harness.objects!r:.300}")

    @rule
    async def test_matching_events_close_the_object(self) -> None:
        """If `close_when` is true for an event, the event's object is closed.

        The closed object's last note is the report, which explains why Tocsin closed the object.
        """
        async with self.harness(close_when="event_type == 'investigation-completed'") as harness:
            await harness.bring(harness.alert())
            expect(harness.objects[0].is_open, "its alert closed it")
            event = harness.completed("incident:7")
            await harness.bring(event)
            await harness.bring(event)
            [found] = harness.objects
            expect(not found.is_open, "it is still open")
            expect(
                count_event_notes(event, found) == 1,
                f"{count_event_notes(event, found)} notes for one report",
            )

    @rule
    async def test_recovered_failures_are_closed_on_request(self) -> None:
        """With `close_recovered`, a completed run closes the object for its schedule's failures.

        The failure is resolved. The next failure creates a new object.
        """
        async with self.harness(close_recovered=True) as harness:
            await harness.bring(harness.failed(1))
            for _ in range(2):
                await harness.bring(harness.completed())
            expect(
                [remote.is_open for remote in harness.objects] == [False, True, True],
                f"{harness.objects!r:.300}",
            )

    @rule
    async def test_a_failing_condition_closes_nothing(self) -> None:
        """If `close_when` cannot be evaluated, the event is delivered but nothing is closed.

        An error in the condition must not close open cases or block deliveries.
        """
        async with self.harness(close_when="data.risk_score + 'x'") as harness:
            await harness.bring(harness.alert())
            await harness.bring(harness.completed("incident:7"))
            [found] = harness.objects
            expect(found.is_open, "it was closed")
            expect(len(found.notes) == 1, f"{len(found.notes)} notes")

    @rule
    async def test_closed_objects_are_not_closed_again(self) -> None:
        """An object that is already closed is not closed again.

        A second request to close the object would overwrite the reason that a person gave.
        """
        for recovered in (False, True):
            async with self.harness() as harness:
                event = await self._deliver_unclosed(harness, recovered=recovered)
                usual = await self._asked(harness, event)
                harness.use(close_when="data.risk_score > 80", close_recovered=recovered)
                await harness.bring(event)
                expect(not all(remote.is_open for remote in harness.objects), "it was not closed")
                again = await self._asked(harness, event)
                expect(again <= usual, f"unexpected requests: {sorted(again - usual)}")

    async def _deliver_unclosed(self, harness: ObjectChannelHarness, *, recovered: bool) -> Event:
        """Deliver an event that closes no data, and return it."""
        if recovered:
            await harness.bring(harness.failed(1))
        else:
            await harness.bring(harness.alert())
        event = harness.completed() if recovered else harness.completed("incident:7")
        await harness.bring(event)
        return event

    async def _asked(self, harness: ObjectChannelHarness, event: Event) -> set[tuple[str, str]]:
        """Return the write requests that are made when an event is delivered again."""
        before = len(harness.simulator.requests)
        await harness.bring(event)
        asked = harness.simulator.requests[before:]
        return {(request.method, request.path) for request in asked if request.method != "GET"}
