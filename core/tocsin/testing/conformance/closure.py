"""Rules for closing objects."""

from __future__ import annotations

from tocsin.model import Event
from tocsin.testing.conformance.channel_harness import ChannelHarness, ChannelSuite
from tocsin.testing.conformance.rules import expect, rule
from tocsin.testing.conformance.scenarios import count_event_notes


class ClosureRules(ChannelSuite):
    """When an object is closed."""

    @rule
    async def test_nothing_is_closed_unless_that_is_asked_for(self) -> None:
        """No object is closed unless the operator asks for that.

        Whether something is over is for people to say.
        """
        async with self.harness() as lab:
            await lab.bring(lab.failed(1))
            await lab.bring(lab.alert())
            await lab.bring(lab.completed("incident:7"))
            expect(all(object_.is_open for object_ in lab.objects), f"{lab.objects!r:.300}")

    @rule
    async def test_what_the_operator_describes_is_closed(self) -> None:
        """After an event of which `close_when` is true the object is closed.

        Its last note is the report that says why.
        """
        async with self.harness(close_when="event_type == 'investigation-completed'") as lab:
            await lab.bring(lab.alert())
            expect(lab.objects[0].is_open, "it was closed by its alert")
            event = lab.completed("incident:7")
            await lab.bring(event)
            await lab.bring(event)
            [found] = lab.objects
            expect(not found.is_open, "it is still open")
            expect(
                count_event_notes(event, found) == 1,
                f"{count_event_notes(event, found)} notes of one report",
            )

    @rule
    async def test_failures_that_are_over_are_closed_where_that_is_asked_for(self) -> None:
        """With `close_recovered` a completed run closes the object of its schedule's failures.

        Nobody has to look after what mended itself, and the next failure is seen as a new one.
        """
        async with self.harness(close_recovered=True) as lab:
            await lab.bring(lab.failed(1))
            for _ in range(2):
                await lab.bring(lab.completed())
            expect(
                [object_.is_open for object_ in lab.objects] == [False, True, True],
                f"{lab.objects!r:.300}",
            )

    @rule
    async def test_a_condition_that_cannot_be_decided_closes_nothing(self) -> None:
        """Where `close_when` cannot be decided, the event is delivered and nothing is closed.

        A mistake in it must neither close what people work on, nor hold up what they are told.
        """
        async with self.harness(close_when="data.risk_score + 'x'") as lab:
            await lab.bring(lab.alert())
            await lab.bring(lab.completed("incident:7"))
            [found] = lab.objects
            expect(found.is_open, "it was closed")
            expect(len(found.notes) == 1, f"{len(found.notes)} notes")

    @rule
    async def test_what_is_closed_is_not_closed_again(self) -> None:
        """An object that is closed already is not asked to be closed.

        Who closed it may have said why, and a second time would say something else.
        """
        for recovered in (False, True):
            async with self.harness() as lab:
                event = await self._told(lab, recovered=recovered)
                usual = await self._asked(lab, event)
                lab.use(close_when="data.risk_score > 80", close_recovered=recovered)
                await lab.bring(event)
                expect(not all(object_.is_open for object_ in lab.objects), "it was not closed")
                again = await self._asked(lab, event)
                expect(again <= usual, f"it was asked for {sorted(again - usual)} again")

    async def _told(self, lab: ChannelHarness, *, recovered: bool) -> Event:
        """Return an event of which everything is told and nothing is closed."""
        if recovered:
            await lab.bring(lab.failed(1))
        else:
            await lab.bring(lab.alert())
        event = lab.completed() if recovered else lab.completed("incident:7")
        await lab.bring(event)
        return event

    async def _asked(self, lab: ChannelHarness, event: Event) -> set[tuple[str, str]]:
        """Return what is asked for when an event comes again, beside what is read."""
        before = len(lab.simulator.requests)
        await lab.bring(event)
        asked = lab.simulator.requests[before:]
        return {(it.method, it.path) for it in asked if it.method != "GET"}
