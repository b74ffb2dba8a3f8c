"""Rules for stored positions."""

from __future__ import annotations

from datetime import timedelta

import orjson

from tocsin.model import Incident, Page
from tocsin.testing.conformance.http_harness import HttpConformance
from tocsin.testing.conformance.page_reader import PageReader, ReaderStore, round_trip_json
from tocsin.testing.conformance.pagination import PAGE, SPREAD
from tocsin.testing.conformance.rules import does_not_apply, expect, rule

_MOST_BYTES = 1024 * 1024
_MOST_PAGES = 50


class PositionRules(HttpConformance):
    """Where a read begins and where it goes on."""

    @rule
    async def test_a_position_survives_json(self) -> None:
        """A position is a JSON object that is the same after it was written and read.

        It is kept in the database: a tuple, a time or a number as a key comes back as another.
        """
        async with self.harness(most_per_page=PAGE) as lab:
            lab.put_many(2 * PAGE)
            lab.settle()
            for page in await lab.reader.peek():
                again = orjson.loads(round_trip_json(page.next_position))
                expect(
                    again == page.next_position, f"{page.next_position!r} came back as {again!r}"
                )
                size = len(round_trip_json(again))
                expect(size < _MOST_BYTES, f"a position of {size:,} bytes")

    @rule
    async def test_reading_may_stop_after_any_page(self) -> None:
        """Whoever stops after a page, in a process that ends there, goes on without a gap.

        Processes end at any time. What is remembered elsewhere than in the position is lost then.
        """
        async with self.harness(most_per_page=PAGE) as lab:
            lab.put_many(4 * PAGE)
            lab.settle()
            pages = 0
            while await lab.reader.read(1):
                await lab.restart()
                pages += 1
                expect(pages < _MOST_PAGES, f"it is not at its end after {pages} pages")
            lab.expect_all()

    @rule
    async def test_a_page_that_was_not_stored_is_read_again(self) -> None:
        """A process that ends before a page is stored finds it again at the position before.

        A position that is kept elsewhere, or taken back by the SIEM, skips what was on the page.
        """
        async with self.harness(most_per_page=PAGE) as lab:
            lab.put_many(3 * PAGE)
            lab.settle()
            unstored = PageReader(lab.provider, ReaderStore(positions=dict(lab.store.positions)))
            await unstored.read(3)
            await lab.restart()
            await lab.persist()
            lab.expect_all()

    @rule
    async def test_two_reads_from_one_position_agree(self) -> None:
        """Two reads from the same position bring the same, though by the same object.

        A page whose storing fails is read again: an object that remembers it skips it.
        """
        async with self.harness(most_per_page=PAGE) as lab:
            lab.put_many(2 * PAGE)
            lab.settle()
            one, other = await lab.reader.peek(), await lab.reader.peek()
            seen = f"{len(_read_ids(one))} incidents at first, then {len(_read_ids(other))}"
            expect(_read_ids(one) == _read_ids(other), seen)

    @rule
    async def test_an_empty_first_read_loses_nothing(self) -> None:
        """What comes hours after a first read that brought nothing arrives.

        Without a position each read is the first, and goes back no further than `first_fetch`.
        """
        async with self.harness() as lab:
            await lab.arrive()
            expect(lab.store.positions, "no position came of it, so that each read is the first")
            lab.clock.advance(hours=5)
            lab.put_many(PAGE)
            lab.clock.advance(hours=5)
            await lab.arrive()
            lab.expect_all()

    @rule
    async def test_the_first_read_goes_as_far_back_as_it_is_told(self) -> None:
        """The first read brings what changed within `first_fetch`, and nothing that is older.

        Operators who connect a SIEM want neither its whole past nor a beginning without context.
        """
        async with self.harness() as lab:
            first_fetch = lab.setting("first_fetch")
            now = lab.clock.now()
            ages = (first_fetch - timedelta(minutes=5), first_fetch + timedelta(hours=1))
            within, before = (lab.put(changed_at=now - age, created_at=now - age) for age in ages)
            await lab.reader.read()
            lab.incident(within)
            old = self.external_id(before) in lab.store.incidents
            expect(not old, f"an incident of {ages[1]} ago, where first_fetch is {first_fetch}")

    @rule
    async def test_reading_on_brings_only_what_changed(self) -> None:
        """A read long after the last one brings nothing where nothing has changed.

        A position that stays where it is brings the same each time, once a minute.
        """
        async with self.harness() as lab:
            lab.put_many(PAGE)
            await lab.arrive()
            for _ in range(3):
                lab.clock.advance(hours=2)
                await lab.reader.read()
            already = len(lab.store.delivered)
            lab.clock.advance(hours=2)
            await lab.reader.read()
            again = len(lab.store.delivered) - already
            expect(not again, f"{again} incidents came again, hours after they had changed")

    @rule
    async def test_what_shows_late_arrives(self) -> None:
        """An incident arrives that the SIEM shows only after later ones were read.

        SIEMs index at their own pace: without an overlap that is a loss that nobody notices.
        """
        async with self.harness() as lab:
            overlap = lab.setting("overlap")
            late = lab.put(visible_at=lab.clock.now() + 0.8 * overlap)
            lab.clock.advance(seconds=0.6 * overlap.total_seconds())
            lab.put()
            await lab.arrive()
            lab.clock.advance(seconds=0.2 * overlap.total_seconds())
            await lab.arrive()
            lab.incident(late)

    @rule
    async def test_the_same_moment_may_bring_more(self) -> None:
        """An incident arrives that has the very time of the last one read, and is shown after it.

        Bounds that leave out the last time seen lose it; so do bounds that are cut to seconds.
        """
        async with self.harness() as lab:
            lab.setting("overlap")
            soon = lab.clock.now() + timedelta(minutes=2)
            lab.put()
            twin = lab.put(visible_at=soon)
            after = lab.clock.now() + timedelta(microseconds=1)
            sibling = lab.put(visible_at=soon, changed_at=after)
            await lab.arrive()
            await lab.arrive()
            lab.incident(twin)
            lab.incident(sibling)

    @rule
    async def test_a_change_on_the_second_of_a_bound_is_read(self) -> None:
        """A change on the very second at which one read ended and the next begins arrives.

        A SIEM that answers only what is later than the bound leaves it out of both.
        """
        async with self.harness() as lab:
            for name in ("overlap", "settle_delay"):
                lab.setting(name)
            await lab.restart(overlap=timedelta(0), settle_delay=timedelta(seconds=5))
            await lab.arrive()
            for _ in range(3):
                for _ in range(10):
                    lab.put(changed_at=lab.clock.now().replace(microsecond=0))
                    lab.clock.advance(seconds=1)
                await lab.reader.read()
            await lab.arrive()
            lab.expect_all()

    @rule
    async def test_an_old_incident_that_changes_arrives(self) -> None:
        """An incident of last month arrives when it changes: changes are asked for, not births.

        Analysts raise, close and merge old incidents, and it is the change that matters.
        """
        async with self.harness() as lab:
            long_ago = lab.clock.now() - timedelta(days=30)
            case = lab.put(created_at=long_ago, changed_at=long_ago)
            await lab.arrive()
            lab.change(case, title="Raised again")
            await lab.arrive()
            lab.expect_all()

    @rule
    async def test_a_larger_overlap_brings_nothing_new(self) -> None:
        """After the operator has enlarged `overlap`, everything is as it was.

        It may deliver again what was read, but must neither fail on the position nor miss anything.
        """
        async with self.harness() as lab:
            larger = 3 * lab.setting("overlap")
            lab.put_many(PAGE)
            await lab.arrive()
            known = dict(lab.store.incidents)
            await lab.restart(overlap=larger)
            await lab.arrive()
            expect(lab.store.incidents.keys() == known.keys(), "other incidents than before")
            lab.put()
            await lab.arrive()
            lab.expect_all()

    @rule
    async def test_each_stream_has_a_position_of_its_own(self) -> None:
        """Each stream goes on from its own position, whatever the others have read.

        One time for all of them skips what the slower one has not come to.
        """
        async with self.harness() as lab:
            streams = lab.provider.streams()
            if len(streams) < 2:  # noqa: PLR2004 - there are no others
                does_not_apply("it has one stream")
            lab.put_many(2 * PAGE, every=SPREAD)
            lab.settle()
            for stream in streams:
                await lab.reader.read(streams=[stream])
                lab.clock.advance(hours=1)
            await lab.arrive()
            lab.expect_all()


def _read_ids(pages: list[Page]) -> list[Incident]:
    return [incident for page in pages for incident in page.incidents]
