"""Rules for refreshing incidents and for backfills."""

from __future__ import annotations

from datetime import timedelta

from tocsin.hookspecs import Capability
from tocsin.model import Entity, EntityKind, Window
from tocsin.providers import WindowedProvider
from tocsin.testing.conformance.http_harness import HttpConformance, HttpHarness
from tocsin.testing.conformance.page_reader import PageReader
from tocsin.testing.conformance.pagination import PAGE
from tocsin.testing.conformance.rules import RuleViolation, does_not_apply, expect, rule
from tocsin.testing.siem import Case

_MOST_PAGES = 50
ODD_IDS = ("7/8", "7?8=9", "7#8", "7%8", "7%2F8", "7 8", "7\N{LATIN SMALL LETTER E WITH ACUTE}8")
_ADDRESS = Entity(EntityKind.IP, "198.51.100.99")


class CapabilityRules(HttpConformance):
    """`incident` and `backfill`."""

    @rule
    async def test_an_incident_is_read_again_as_it_is_now(self) -> None:
        """`incident` returns the same `external_id` and the version of this moment.

        What comes back under another id is a second incident, what is old undoes what was read.
        """
        async with self.harness() as lab:
            self._can(Capability.REREAD)
            case = lab.put()
            await lab.arrive()
            case = lab.change(case, title="New title")
            found = await lab.provider.incident(self.external_id(case))
            if found is None:
                raise RuleViolation("None for an incident that there is")
            expect(found.external_id == self.external_id(case), f"the id {found.external_id}")
            expect(self.is_version(found, case), f"{found}")

    @rule
    async def test_entities_that_come_later_are_read_again(self) -> None:
        """`incident` returns entities that the SIEM has only found since.

        They lag behind in many SIEMs, by minutes, and that does not count as a change there.
        """
        async with self.harness() as lab:
            self._can(Capability.REREAD)
            lab.differing("what an incident is about", entities=(_ADDRESS,))
            soon = lab.clock.now() + timedelta(minutes=10)
            case = lab.put(entities=(_ADDRESS,), entities_at=soon)
            await lab.arrive()
            lab.clock.advance(minutes=10)
            found = await lab.provider.incident(self.external_id(case))
            expect(found and _ADDRESS in found.entities, f"{found and found.entities}")

    @rule
    async def test_any_id_is_read_again(self) -> None:
        """`incident` finds an incident whose id has a slash, a space, `?`, `#` or `%` in it.

        An id that is put into a path as it is leads to another incident, or to none.
        """
        async with self.harness() as lab:
            self._can(Capability.REREAD)
            for odd in ODD_IDS:
                case = lab.put(id=odd)
                await lab.arrive()
                name = self.external_id(case)
                if name not in lab.store.incidents:
                    does_not_apply(f"its ids are never such as {name!r}")
                found = await lab.provider.incident(name)
                seen = f"{found and found.external_id!r} for {name!r}"
                expect(found and found.external_id == name, seen)

    @rule
    async def test_details_that_are_refused_cost_no_incident(self) -> None:
        """An incident arrives, and so do the others, though the SIEM refuses its details.

        It was deleted, or is nobody's business but theirs: asked for again, it holds up the rest.
        """
        async with self.harness(most_per_page=PAGE) as lab:
            if getattr(self.provider, "complete", None) in (None, WindowedProvider.complete):
                does_not_apply("it does not override `complete`")
            for status in (404, 422):
                case, *_ = lab.put_many(2 * PAGE)
                lab.refused[case.id] = status
                await lab.persist()
                lab.expect_all()

    @rule
    async def test_an_incident_that_is_gone_is_none(self) -> None:
        """`incident` returns None for one that the SIEM has no more.

        An error would be taken for one of the SIEM's, and be asked again and again.
        """
        async with self.harness() as lab:
            self._can(Capability.REREAD)
            found = await lab.provider.incident(self.external_id(lab.case()))
            expect(found is None, f"{found}")

    @rule
    async def test_a_backfill_brings_its_window(self) -> None:
        """`backfill` brings all that changed in its window, and nothing else.

        Operators fill a hole that they know of; more would raise alerts of long ago.
        """
        async with self.harness(most_per_page=PAGE) as lab:
            window, inside, outside = _past_window(self, lab)
            await lab.reader.fill(window)
            for case in inside:
                lab.incident(case)
            names = {self.external_id(case) for case in outside} & lab.store.incidents.keys()
            expect(not names, f"{len(names)} incidents from outside of the window")

    @rule
    async def test_a_backfill_begins_on_its_first_second(self) -> None:
        """`backfill` brings what changed on the very second at which its window begins.

        It is where what was lost begins: operators fill exactly the hole that the ledger shows.
        """
        async with self.harness() as lab:
            window, _, _ = _past_window(self, lab)
            start = window.start.replace(microsecond=0)
            case = lab.put(created_at=start, changed_at=start)
            await lab.reader.fill(Window(start, window.end))
            lab.incident(case)

    @rule
    async def test_a_backfill_goes_on_after_any_page(self) -> None:
        """`backfill` goes on from its position in a process that remembers nothing.

        It may be one of weeks, over which processes end.
        """
        async with self.harness(most_per_page=PAGE) as lab:
            window, inside, _ = _past_window(self, lab)
            pages = 0
            while await lab.reader.fill(window, 1):
                await lab.restart()
                pages += 1
                expect(pages < _MOST_PAGES, f"it is not at its end after {pages} pages")
            for case in inside:
                lab.incident(case)

    @rule
    async def test_a_backfill_leaves_the_reading_alone(self) -> None:
        """Reading goes on as if no backfill had taken place in between.

        One that moves the position, or remembers what it saw, makes a hole while it fills another.
        """
        async with self.harness(most_per_page=PAGE) as lab:
            await lab.arrive()
            window, _, _ = _past_window(self, lab)
            cases = lab.put_many(2 * PAGE)
            end = lab.clock.now()
            lab.settle()
            await PageReader(lab.provider).fill(Window(window.start, end))
            await lab.arrive()
            for case in cases:
                lab.incident(case)

    def _can(self, capability: Capability) -> None:
        if capability not in self.provider.capabilities():
            does_not_apply(f"it does not offer {capability}")


def _past_window(suite: CapabilityRules, lab: HttpHarness) -> tuple[Window, list[Case], list[Case]]:
    """Return a window of the past, with what changed in it, and before and after it."""
    suite._can(Capability.BACKFILL)  # noqa: SLF001 - it is of the same house
    start = lab.clock.now() - timedelta(hours=30)
    window = Window(start, start + timedelta(hours=2))

    def put(minutes: int) -> Case:
        moment = start + timedelta(minutes=minutes)
        return lab.put(created_at=moment, changed_at=moment)

    inside = [put(minutes) for minutes in range(5, 115, 10)]
    return window, inside, [put(-60), put(180)]
