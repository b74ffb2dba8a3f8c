"""Rules for deliveries, including faults at every request."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from itertools import cycle

from tocsin.delivery import HEARTBEAT
from tocsin.model import Idempotency
from tocsin.testing.conformance.channel_harness import ChannelHarness
from tocsin.testing.conformance.rules import does_not_apply, expect, rule
from tocsin.testing.conformance.scenarios import (
    NEW_OBJECT,
    SCENARIOS,
    ChannelScenario,
    ObjectShape,
    ScenarioSuite,
    closed_failure,
    count_notes,
    object_shapes,
)
from tocsin.testing.faults import Fault

_HOSTILE = (
    '"}, {"x": "',
    "two\nlines\r\nX-Header: 1",
    "</script><img src=x onerror=alert(1)> ![](http://example.com/x)",
    "{{ 7 * 7 }}{% raw %}${jndi:ldap://x}",
    "\u202egnp.exe \U0001f6a8",
    "long " * 20_000,
)
_WRONG = (Fault.ERROR, Fault.RESTARTED)


class DeliveryRules(ScenarioSuite):
    """What becomes of an event."""

    @rule
    async def test_an_incident_becomes_one_object(self) -> None:
        """An alert becomes one open object that has each of the incident's entities once.

        The receipt says what the receiver calls it, and where a person can look at it.
        """
        async with self.harness() as lab:
            receipt = await lab.bring(lab.alert())
            expect(object_shapes(lab) == [NEW_OBJECT], f"{lab.objects!r:.400}")
            expect(receipt.remote_id == lab.objects[0].id, f"remote_id {receipt.remote_id!r}")
            expect(str(receipt.remote_url).startswith("http"), f"a link {receipt.remote_url!r}")

    @rule
    async def test_the_same_event_again_adds_nothing(self) -> None:
        """An event that comes again, such as by a replay, makes and adds nothing.

        Deliveries are made at least once, and who is told everything twice stops reading.
        """
        for story in SCENARIOS:
            async with self.harness() as lab:
                event = await story(lab)
                await lab.bring(event)
                before = object_shapes(lab)
                await lab.bring(event)
                expect(
                    object_shapes(lab) == before,
                    f"{before!r:.200} became {object_shapes(lab)!r:.200}",
                )

    @rule
    async def test_what_a_killed_node_made_is_found(self) -> None:
        """After a node died between an object and its record, the next one makes no second.

        Nobody knows of that object but the receiver, and perhaps its search does not yet.
        """
        if self.idempotency is Idempotency.NONE:
            does_not_apply("its receiver has nothing to tell a second one by")
        for story in SCENARIOS:
            async with self.harness() as lab:
                event = await story(lab)
                await lab.bring(event, remember=False)
                before = object_shapes(lab)
                lab.restart()
                lab.clock.advance(seconds=1)
                await lab.bring(event)
                expect(
                    object_shapes(lab) == before,
                    f"{before!r:.200} became {object_shapes(lab)!r:.200}",
                )

    @rule
    async def test_a_failure_at_any_step_leaves_what_was_to_be(self) -> None:
        """Whichever request fails, the next attempts end with the same as if none had.

        A ticket with half of its observables looks like a whole one.
        """
        await self._expect_same(_WRONG)

    @rule
    async def test_an_answer_that_is_lost_at_any_step_leaves_what_was_to_be(self) -> None:
        """Whichever request is done but never answered, nothing is there twice in the end.

        The receiver has made it, and the sender cannot know.
        """
        await self._expect_same((Fault.LOST, Fault.CUT))

    @rule
    async def test_the_failures_of_a_schedule_in_a_row_are_one_object(self) -> None:
        """What fails in a row is one object, up to the schedule being disabled; then a new one.

        The object of failures that are over may be closed, and nobody would see the next.
        """
        async with self.harness() as lab:
            for event in (lab.failed(1), lab.failed(2), lab.disabled()):
                await lab.bring(event)
            expect(count_notes(lab) == [2], f"objects with {count_notes(lab)} notes")
            await lab.bring(lab.failed(1))
            await lab.bring(lab.failed(2))
            expect(count_notes(lab) == [2, 1], f"objects with {count_notes(lab)} notes")

    @rule
    async def test_an_object_that_is_gone_is_made_anew(self) -> None:
        """Where a person has removed the object, the next event of its subject makes another.

        Else everything that is told later is lost, or waits for ever.
        """
        async with self.harness() as lab:
            await lab.bring(lab.failed(1))
            lab.simulator.remove(lab.objects[0].id)
            await lab.bring(lab.failed(2))
            expect(len(lab.objects) == 1, f"{len(lab.objects)} objects")

    @rule
    async def test_failures_go_on_at_a_new_object_where_the_last_was_closed(self) -> None:
        """Once a person has closed the object of failures, what fails next is a new one.

        Nobody looks at what is closed.
        """
        for later in (ChannelHarness.disabled, partial(ChannelHarness.failed, times=2)):
            async with self.harness() as lab:
                await closed_failure(lab)
                [closed] = object_shapes(lab)
                event = later(lab)
                for _ in range(2):
                    await lab.bring(event)
                    there = object_shapes(lab)
                    is_new = there[:1] == [closed] and [it[1:] for it in there[1:]] == [(0, True)]
                    expect(is_new, f"after {event.event_type}: {there!r:.300}")

    @rule
    async def test_an_attempt_may_begin_long_after_its_claim(self) -> None:
        """What an attempt made that began late, and whose end nobody knows, stays the only one.

        Deliveries are claimed ahead of time, and a search lags behind what was made.
        """
        late = HEARTBEAT - timedelta(seconds=1)
        if self.idempotency is Idempotency.NONE:
            does_not_apply("its receiver has nothing to tell a second one by")
        steps, _ = await self.count_steps(SCENARIOS[0])
        for step in range(steps):
            async with self.harness() as lab:
                lab.simulator.fail(Fault.LOST, after=step)
                event = lab.alert()
                await lab.bring(event, remember=False, waited=late)
                lab.restart()
                await lab.bring(event)
                expect(
                    object_shapes(lab) == [NEW_OBJECT], f"request {step + 1}: {lab.objects!r:.300}"
                )

    @rule
    async def test_hostile_texts_are_data(self) -> None:
        """Whatever a title holds, it becomes one object.

        Attackers choose what incidents are called.
        """
        for title in _HOSTILE:
            async with self.harness() as lab:
                await lab.bring(lab.alert(title=title))
                expect(object_shapes(lab) == [NEW_OBJECT], f"{title!r:.80}: {lab.objects!r:.300}")

    async def _expect_same(self, faults: Sequence[Fault]) -> None:
        """Try out every step, with the faults in turn."""
        turns = cycle(faults)
        for story in self.scenarios:
            steps, wanted = await self.count_steps(story)
            for step in range(steps):
                await self._expect_same_after(story, step, next(turns), wanted)

    async def _expect_same_after(
        self, story: ChannelScenario, step: int, fault: Fault, wanted: list[ObjectShape]
    ) -> None:
        async with self.harness() as lab:
            event = await story(lab)
            lab.simulator.fail(fault, after=step)
            await lab.bring(event)
            doubled = len(lab.objects) - len(wanted)
            marked = self.idempotency is Idempotency.NONE and doubled == 1
            where = f"{event.event_type}, request {step + 1}, {fault}"
            seen = f"{where}: {object_shapes(lab)!r:.200} and not {wanted!r:.200}"
            expect(object_shapes(lab) == wanted or marked, seen)
