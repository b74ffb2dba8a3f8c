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
    """Rules for `incident` and `backfill`."""

    @rule
    async def test_an_incident_is_refreshed(self) -> None:
        """`incident` returns the current version, with the same `external_id`.

        Another ID would create a second incident. An old version would undo later changes.
        """
        async with self.harness() as harness:
            self._can(Capability.REFRESH)
            case = harness.put()
            await harness.arrive()
            case = harness.change(case, title="New title")
            found = await harness.provider.incident(self.external_id(case))
            if found is None:
                raise RuleViolation("None for an incident that exists")
            expect(found.external_id == self.external_id(case), f"the id {found.external_id}")
            expect(self.is_version(found, case), f"{found}")

    @rule
    async def test_late_entities_are_refreshed(self) -> None:
        """`incident` returns entities that the SIEM added after the incident was read.

        In many SIEMs, entities appear minutes after the incident and do not count as a change to
        it.
        """
        async with self.harness() as harness:
            self._can(Capability.REFRESH)
            harness.differing("the entities of an incident", entities=(_ADDRESS,))
            soon = harness.clock.now() + timedelta(minutes=10)
            case = harness.put(entities=(_ADDRESS,), entities_at=soon)
            await harness.arrive()
            harness.clock.advance(minutes=10)
            found = await harness.provider.incident(self.external_id(case))
            expect(found and _ADDRESS in found.entities, f"{found and found.entities}")

    @rule
    async def test_any_id_is_refreshed(self) -> None:
        """`incident` finds incidents whose ID contains a slash, a space, `?`, `#` or `%`.

        If the ID is not escaped, the path leads to another incident or to none.
        """
        async with self.harness() as harness:
            self._can(Capability.REFRESH)
            for odd in ODD_IDS:
                case = harness.put(id=odd)
                await harness.arrive()
                name = self.external_id(case)
                if name not in harness.store.incidents:
                    does_not_apply(f"its ids never look like {name!r}")
                found = await harness.provider.incident(name)
                seen = f"{found and found.external_id!r} for {name!r}"
                expect(found and found.external_id == name, seen)

    @rule
    async def test_refused_details_lose_no_incident(self) -> None:
        """All incidents arrive even if the SIEM refuses to return the details of one of them.

        Details can be deleted or restricted. If the provider repeated the request until it
        succeeds, no further incidents would arrive.
        """
        async with self.harness(most_per_page=PAGE) as harness:
            if getattr(self.provider, "complete", None) in (None, WindowedProvider.complete):
                does_not_apply("the provider does not override `complete`")
            for status in (404, 422):
                case, *_ = harness.put_many(2 * PAGE)
                harness.refused[case.id] = status
                await harness.persist()
                harness.expect_all()

    @rule
    async def test_a_deleted_incident_is_none(self) -> None:
        """`incident` returns None for an incident that no longer exists in the SIEM.

        An error would look like a failure of the SIEM, and Tocsin would repeat the request.
        """
        async with self.harness() as harness:
            self._can(Capability.REFRESH)
            found = await harness.provider.incident(self.external_id(harness.case()))
            expect(found is None, f"{found}")

    @rule
    async def test_a_backfill_returns_its_window(self) -> None:
        """`backfill` returns all changes in its window, and no others.

        Operators use backfills to fill known gaps. Records from outside a gap would cause alerts
        about old incidents.
        """
        async with self.harness(most_per_page=PAGE) as harness:
            window, inside, outside = _past_window(self, harness)
            await harness.reader.fill(window)
            for case in inside:
                harness.incident(case)
            names = {self.external_id(case) for case in outside} & harness.store.incidents.keys()
            expect(not names, f"{len(names)} incidents from outside the window")

    @rule
    async def test_a_backfill_includes_its_first_second(self) -> None:
        """`backfill` includes changes at the exact second at which its window starts.

        Operators backfill exactly the gap that the coverage ledger shows.
        """
        async with self.harness() as harness:
            window, _, _ = _past_window(self, harness)
            start = window.start.replace(microsecond=0)
            case = harness.put(created_at=start, changed_at=start)
            await harness.reader.fill(Window(start, window.end))
            harness.incident(case)

    @rule
    async def test_a_backfill_continues_after_any_page(self) -> None:
        """In a new process, `backfill` continues from its stored position.

        A backfill can cover weeks, and processes can restart before it finishes.
        """
        async with self.harness(most_per_page=PAGE) as harness:
            window, inside, _ = _past_window(self, harness)
            pages = 0
            while await harness.reader.fill(window, 1):
                await harness.restart()
                pages += 1
                expect(pages < _MOST_PAGES, f"not finished after {pages} pages")
            for case in inside:
                harness.incident(case)

    @rule
    async def test_a_backfill_does_not_affect_reads(self) -> None:
        """A backfill does not affect regular reads.

        A backfill that moved the position of regular reads, or that kept state in the provider,
        would cause a new gap.
        """
        async with self.harness(most_per_page=PAGE) as harness:
            await harness.arrive()
            window, _, _ = _past_window(self, harness)
            cases = harness.put_many(2 * PAGE)
            end = harness.clock.now()
            harness.settle()
            await PageReader(harness.provider).fill(Window(window.start, end))
            await harness.arrive()
            for case in cases:
                harness.incident(case)

    def _can(self, capability: Capability) -> None:
        if capability not in self.provider.capabilities():
            does_not_apply(f"the provider does not offer {capability}")


def _past_window(
    suite: CapabilityRules, harness: HttpHarness
) -> tuple[Window, list[Case], list[Case]]:
    """Return a window in the past, the cases that changed in it, and cases outside of it."""
    suite._can(Capability.BACKFILL)  # noqa: SLF001 - same module
    start = harness.clock.now() - timedelta(hours=30)
    window = Window(start, start + timedelta(hours=2))

    def put(minutes: int) -> Case:
        moment = start + timedelta(minutes=minutes)
        return harness.put(created_at=moment, changed_at=moment)

    inside = [put(minutes) for minutes in range(5, 115, 10)]
    return window, inside, [put(-60), put(180)]
