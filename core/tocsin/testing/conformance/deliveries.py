"""Rules for deliveries, including faults at every request."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from itertools import cycle

from tocsin.delivery import HEARTBEAT
from tocsin.model import Idempotency
from tocsin.testing.conformance.object_channel_harness import ObjectChannelHarness
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
    """Rules for the results of deliveries."""

    @rule
    async def test_an_incident_becomes_one_object(self) -> None:
        """An alert creates one open object that lists each of the incident's entities once.

        Analysts start their work with the object. The receipt contains the receiver's ID for the
        object and a link to it.
        """
        async with self.harness() as harness:
            receipt = await harness.bring(harness.alert())
            expect(object_shapes(harness) == [NEW_OBJECT], f"{harness.objects!r:.400}")
            expect(receipt.remote_id == harness.objects[0].id, f"remote_id {receipt.remote_id!r}")
            expect(str(receipt.remote_url).startswith("http"), f"remote_url {receipt.remote_url!r}")

    @rule
    async def test_a_repeated_event_adds_nothing(self) -> None:
        """An event that is delivered again, for example by a replay, does not add anything.

        Tocsin can deliver an event more than once, and people stop reading when they see
        duplicates.
        """
        for story in SCENARIOS:
            async with self.harness() as harness:
                event = await story(harness)
                await harness.bring(event)
                before = object_shapes(harness)
                await harness.bring(event)
                expect(
                    object_shapes(harness) == before,
                    f"{before!r:.200} became {object_shapes(harness)!r:.200}",
                )

    @rule
    async def test_the_object_of_a_killed_node_is_found(self) -> None:
        """If a node crashes after it has created an object, the next attempt does not create a
        second one.

        Tocsin has not recorded the object yet, and the receiver's search might not find it yet.
        """
        if self.idempotency is Idempotency.NONE:
            does_not_apply("the receiver cannot recognize duplicates")
        for story in SCENARIOS:
            async with self.harness() as harness:
                event = await story(harness)
                await harness.bring(event, remember=False)
                before = object_shapes(harness)
                harness.restart()
                harness.clock.advance(seconds=1)
                await harness.bring(event)
                expect(
                    object_shapes(harness) == before,
                    f"{before!r:.200} became {object_shapes(harness)!r:.200}",
                )

    @rule
    async def test_a_failure_at_any_step_changes_no_result(self) -> None:
        """Whichever single request fails, retries lead to the same result as a delivery without
        failures.

        Otherwise, a ticket could lack some of its observables and still look complete.
        """
        await self._expect_same(_WRONG)

    @rule
    async def test_a_lost_response_at_any_step_changes_no_result(self) -> None:
        """Whichever single response is lost, nothing is created twice.

        The receiver has processed the request, but Tocsin does not know the result.
        """
        await self._expect_same((Fault.LOST, Fault.CUT))

    @rule
    async def test_consecutive_failures_share_an_object(self) -> None:
        """Until a schedule is disabled, all its consecutive failures share one object.

        People track the failures in one place. Failures after the schedule is enabled again create
        a new object, because the old object might be closed.
        """
        async with self.harness() as harness:
            for event in (harness.failed(1), harness.failed(2), harness.disabled()):
                await harness.bring(event)
            expect(count_notes(harness) == [2], f"objects with {count_notes(harness)} notes")
            await harness.bring(harness.failed(1))
            await harness.bring(harness.failed(2))
            expect(count_notes(harness) == [2, 1], f"objects with {count_notes(harness)} notes")

    @rule
    async def test_a_deleted_object_is_recreated(self) -> None:
        """If a person deletes an object, the next event about the same incident or schedule creates
        another one.

        Otherwise, later events would be lost or wait forever.
        """
        async with self.harness() as harness:
            await harness.bring(harness.failed(1))
            harness.simulator.remove(harness.objects[0].id)
            await harness.bring(harness.failed(2))
            expect(len(harness.objects) == 1, f"{len(harness.objects)} objects")

    @rule
    async def test_failures_after_a_closed_object_create_another(self) -> None:
        """If a person closes the object for a schedule's failures, the next failure creates a new
        object.

        People do not read closed objects.
        """
        for later in (ObjectChannelHarness.disabled, partial(ObjectChannelHarness.failed, times=2)):
            async with self.harness() as harness:
                await closed_failure(harness)
                [closed] = object_shapes(harness)
                event = later(harness)
                for _ in range(2):
                    await harness.bring(event)
                    shapes = object_shapes(harness)
                    is_new = shapes[:1] == [closed] and [shape[1:] for shape in shapes[1:]] == [
                        (0, True)
                    ]
                    expect(is_new, f"after {event.event_type}: {shapes!r:.300}")

    @rule
    async def test_a_late_attempt_creates_no_duplicate(self) -> None:
        """An attempt that starts late and whose result is unknown never leads to a second object.

        A node can start an attempt long after it has claimed the delivery, and the receiver's
        search finds new objects only after a delay.
        """
        late = HEARTBEAT - timedelta(seconds=1)
        if self.idempotency is Idempotency.NONE:
            does_not_apply("the receiver cannot recognize duplicates")
        steps, _ = await self.count_steps(SCENARIOS[0])
        for step in range(steps):
            async with self.harness() as harness:
                harness.simulator.fail(Fault.LOST, after=step)
                event = harness.alert()
                await harness.bring(event, remember=False, waited=late)
                harness.restart()
                await harness.bring(event)
                expect(
                    object_shapes(harness) == [NEW_OBJECT],
                    f"request {step + 1}: {harness.objects!r:.300}",
                )

    @rule
    async def test_hostile_texts_are_data(self) -> None:
        """An alert becomes one object, whatever its title contains.

        Attackers can influence the titles of incidents.
        """
        for title in _HOSTILE:
            async with self.harness() as harness:
                await harness.bring(harness.alert(title=title))
                expect(
                    object_shapes(harness) == [NEW_OBJECT],
                    f"{title!r:.80}: {harness.objects!r:.300}",
                )

    async def _expect_same(self, faults: Sequence[Fault]) -> None:
        """Test every step of each scenario, with the faults in turn."""
        turns = cycle(faults)
        for story in self.scenarios:
            steps, wanted = await self.count_steps(story)
            for step in range(steps):
                await self._expect_same_after(story, step, next(turns), wanted)

    async def _expect_same_after(
        self, story: ChannelScenario, step: int, fault: Fault, wanted: list[ObjectShape]
    ) -> None:
        async with self.harness() as harness:
            event = await story(harness)
            harness.simulator.fail(fault, after=step)
            await harness.bring(event)
            doubled = len(harness.objects) - len(wanted)
            marked = self.idempotency is Idempotency.NONE and doubled == 1
            where = f"{event.event_type}, request {step + 1}, {fault}"
            seen = f"{where}: {object_shapes(harness)!r:.200} and not {wanted!r:.200}"
            expect(object_shapes(harness) == wanted or marked, seen)
