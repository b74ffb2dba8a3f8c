"""Rules for stored positions."""

from __future__ import annotations

from datetime import timedelta

import orjson

from tocsin.hookspecs import Provider
from tocsin.model import Incident, Page
from tocsin.testing.conformance.http_harness import HttpConformance
from tocsin.testing.conformance.page_reader import PageReader, ReaderStore, round_trip_json
from tocsin.testing.conformance.pagination import PAGE, SPREAD
from tocsin.testing.conformance.rules import does_not_apply, expect, rule

_MOST_BYTES = 1024 * 1024
_MOST_PAGES = 50


class PositionRules(HttpConformance):
    """Rules for the start and the continuation of reads."""

    @rule
    async def test_a_position_survives_json(self) -> None:
        """A position is a JSON object that stays the same when it is stored and loaded.

        Tocsin stores positions as JSON, which does not preserve tuples, times and numeric keys.
        """
        async with self.harness(most_per_page=PAGE) as harness:
            harness.put_many(2 * PAGE)
            harness.settle()
            for page in await harness.reader.peek():
                again = orjson.loads(round_trip_json(page.next_position))
                expect(
                    again == page.next_position, f"{page.next_position!r} came back as {again!r}"
                )
                size = len(round_trip_json(again))
                expect(size < _MOST_BYTES, f"a position of {size:,} bytes")

    @rule
    async def test_reading_may_stop_after_any_page(self) -> None:
        """If a process ends after any page, the next process continues without a gap.

        Processes can end at any time, and state outside the position is lost with them.
        """
        async with self.harness(most_per_page=PAGE) as harness:
            harness.put_many(4 * PAGE)
            harness.settle()
            pages = 0
            while await harness.reader.read(1):
                await harness.restart()
                pages += 1
                expect(pages < _MOST_PAGES, f"not finished after {pages} pages")
            harness.expect_all()

    @rule
    async def test_a_page_that_was_not_stored_is_read_again(self) -> None:
        """When a page was not stored, the next read returns its incidents again.

        A provider that keeps its own position would skip the page, and so would a provider that
        relies on a SIEM that returns each record only once.
        """
        async with self.harness(most_per_page=PAGE) as harness:
            harness.put_many(3 * PAGE)
            harness.settle()
            unstored = PageReader(
                harness.provider, ReaderStore(positions=dict(harness.store.positions))
            )
            await unstored.read(3)
            await harness.restart()
            await harness.persist()
            harness.expect_all()

    @rule
    async def test_two_reads_from_one_position_agree(self) -> None:
        """Two reads from the same position return the same result, even if the same provider object
        performs both reads.

        When Tocsin cannot store a page, it reads the page again. A provider that keeps state in its
        object would skip the page.
        """
        async with self.harness(most_per_page=PAGE) as harness:
            harness.put_many(2 * PAGE)
            harness.settle()
            one, other = await harness.reader.peek(), await harness.reader.peek()
            seen = f"{len(_read_ids(one))} incidents at first, then {len(_read_ids(other))}"
            expect(_read_ids(one) == _read_ids(other), seen)

    @rule
    async def test_an_empty_first_read_loses_nothing(self) -> None:
        """If the first read was empty, incidents that appear hours later still arrive.

        An empty read must also return a position. Otherwise, each read would be a first read,
        limited to `first_fetch`.
        """
        async with self.harness() as harness:
            await harness.arrive()
            expect(
                harness.store.positions, "no position was returned, so each read is a first read"
            )
            harness.clock.advance(hours=5)
            harness.put_many(PAGE)
            harness.clock.advance(hours=5)
            await harness.arrive()
            harness.expect_all()

    @rule
    async def test_the_first_read_covers_first_fetch(self) -> None:
        """The first read returns changes within `first_fetch`, and nothing older.

        At the start, operators need some context but not the whole history.
        """
        async with self.harness() as harness:
            first_fetch = harness.setting("first_fetch")
            now = harness.clock.now()
            ages = (first_fetch - timedelta(minutes=5), first_fetch + timedelta(hours=1))
            within, before = (
                harness.put(changed_at=now - age, created_at=now - age) for age in ages
            )
            await harness.reader.read()
            harness.incident(within)
            old = self.external_id(before) in harness.store.incidents
            expect(not old, f"an incident from {ages[1]} ago, with first_fetch = {first_fetch}")

    @rule
    async def test_later_reads_return_only_changes(self) -> None:
        """If nothing has changed, a read returns nothing, even long after the previous read.

        If the position never advanced, every read would return the same incidents again.
        """
        async with self.harness() as harness:
            harness.put_many(PAGE)
            await harness.arrive()
            for _ in range(3):
                harness.clock.advance(hours=2)
                await harness.reader.read()
            already = len(harness.store.delivered)
            harness.clock.advance(hours=2)
            await harness.reader.read()
            again = len(harness.store.delivered) - already
            expect(not again, f"{again} incidents arrived again, hours after their change")

    @rule
    async def test_late_incidents_arrive(self) -> None:
        """An incident still arrives if the SIEM shows it only after later incidents were read.

        SIEMs show new records with a delay. Without an overlap, such incidents would be lost
        without an error.
        """
        async with self.harness() as harness:
            overlap = harness.setting("overlap")
            late = harness.put(visible_at=harness.clock.now() + 0.8 * overlap)
            harness.clock.advance(seconds=0.6 * overlap.total_seconds())
            harness.put()
            await harness.arrive()
            harness.clock.advance(seconds=0.2 * overlap.total_seconds())
            await harness.arrive()
            harness.incident(late)

    @rule
    async def test_late_incidents_with_equal_timestamps_arrive(self) -> None:
        """An incident arrives even if it appears after another incident with the same timestamp.

        If a query excludes the last timestamp, or if its bounds are truncated to seconds, the
        incident is lost.
        """
        async with self.harness() as harness:
            harness.setting("overlap")
            soon = harness.clock.now() + timedelta(minutes=2)
            harness.put()
            twin = harness.put(visible_at=soon)
            after = harness.clock.now() + timedelta(microseconds=1)
            sibling = harness.put(visible_at=soon, changed_at=after)
            await harness.arrive()
            await harness.arrive()
            harness.incident(twin)
            harness.incident(sibling)

    @rule
    async def test_a_change_at_the_bound_of_a_window_is_read(self) -> None:
        """A change arrives even if its time is the exact second at which one read ends and the next
        begins.

        If the SIEM filters with "later than", neither read returns the change.
        """
        async with self.harness() as harness:
            for name in ("overlap", "settle_delay"):
                harness.setting(name)
            await harness.restart(overlap=timedelta(0), settle_delay=timedelta(seconds=5))
            await harness.arrive()
            for _ in range(3):
                for _ in range(10):
                    harness.put(changed_at=harness.clock.now().replace(microsecond=0))
                    harness.clock.advance(seconds=1)
                await harness.reader.read()
            await harness.arrive()
            harness.expect_all()

    @rule
    async def test_an_old_incident_that_changes_arrives(self) -> None:
        """An old incident arrives when it changes: reads follow changes, not creation.

        Analysts escalate, close and merge old incidents.
        """
        async with self.harness() as harness:
            long_ago = harness.clock.now() - timedelta(days=30)
            case = harness.put(created_at=long_ago, changed_at=long_ago)
            await harness.arrive()
            harness.change(case, title="Raised again")
            await harness.arrive()
            harness.expect_all()

    @rule
    async def test_a_larger_overlap_brings_nothing_new(self) -> None:
        """After an operator increases `overlap`, reads do not fail or miss incidents.

        Incidents in the longer overlap can arrive again, and Tocsin stores them only once.
        """
        async with self.harness() as harness:
            overlap = harness.setting("overlap")
            larger = min(3 * overlap, _find_maximum(self.provider, "overlap"))
            if larger <= overlap:
                does_not_apply("the default of `overlap` is its maximum")
            harness.put_many(PAGE)
            await harness.arrive()
            known = dict(harness.store.incidents)
            await harness.restart(overlap=larger)
            await harness.arrive()
            expect(harness.store.incidents.keys() == known.keys(), "the incidents differ")
            harness.put()
            await harness.arrive()
            harness.expect_all()

    @rule
    async def test_each_stream_has_its_own_position(self) -> None:
        """Each stream continues from its own position.

        With a shared position, records that a slower stream has not read yet would be skipped.
        """
        async with self.harness() as harness:
            streams = harness.provider.streams()
            if len(streams) < 2:  # noqa: PLR2004 - there are no others
                does_not_apply("the provider has one stream")
            harness.put_many(2 * PAGE, every=SPREAD)
            harness.settle()
            for stream in streams:
                await harness.reader.read(streams=[stream])
                harness.clock.advance(hours=1)
            await harness.arrive()
            harness.expect_all()


def _find_maximum(kind: type[Provider], name: str) -> timedelta:
    """Return the largest value that a setting accepts."""
    metadata = kind.Settings.model_fields[name].metadata
    limits = (getattr(limit, "le", None) for limit in metadata)
    return next((limit for limit in limits if isinstance(limit, timedelta)), timedelta.max)


def _read_ids(pages: list[Page]) -> list[Incident]:
    return [incident for page in pages for incident in page.incidents]
