"""Rules for coverage and clock skew."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise

from tocsin.model import Covered
from tocsin.testing.conformance.http_harness import HttpConformance, HttpHarness
from tocsin.testing.conformance.pagination import PAGE
from tocsin.testing.conformance.records import PRECISION
from tocsin.testing.conformance.rules import RuleViolation, does_not_apply, expect, rule
from tocsin.testing.faults import Fault

_SKEW = timedelta(minutes=5)
_SETTLED = timedelta(minutes=10)


class CoverageRules(HttpConformance):
    """Rules for the intervals that a provider accounts for."""

    @rule
    async def test_coverage_has_no_gaps(self) -> None:
        """Each `covered` interval starts at the end of the previous interval.

        From these intervals, Tocsin builds the coverage ledger, in which operators find gaps to
        backfill.
        """
        async with self.harness(most_per_page=PAGE) as harness:
            for _ in range(3):
                harness.put_many(2 * PAGE)
                await harness.arrive()
                harness.clock.advance(hours=3)
            await harness.arrive()
            for one, next_one in pairwise(_merge_intervals(harness)):
                gap = _start(next_one) > _end(one)
                expect(not gap, f"nothing covers {one.end} to {next_one.start}")

    @rule
    async def test_only_what_was_read_is_covered(self) -> None:
        """When a page reports an interval as covered, every incident of the interval has arrived.

        Nobody looks for missing incidents in an interval that counts as covered.
        """
        for stop in range(1, 6):
            async with self.harness(most_per_page=PAGE) as harness:
                harness.put_many(4 * PAGE)
                harness.settle()
                await harness.reader.read(stop)
                harness.simulator.fail(Fault.THROTTLED)
                await harness.reader.failure()
                _expect_read(harness)

    @rule
    async def test_the_future_is_not_covered(self) -> None:
        """`covered` ends no later than the time of the read, and later reads move its end forward.

        If an interval ended later than the read, incidents that appear after the read would count
        as read.
        """
        async with self.harness() as harness:
            harness.put()
            await harness.arrive()
            harness.clock.advance(hours=1)
            await harness.reader.read()
            latest = max(map(_end, _merge_intervals(harness)))
            expect(latest <= harness.siem.now(), f"{latest} is covered at {harness.siem.now()}")
            expect(
                latest >= harness.siem.now() - _SETTLED,
                f"coverage ends at {latest}, at {harness.siem.now()}",
            )

    @rule
    async def test_a_version_has_the_siems_time_of_change(self) -> None:
        """`changed_at` is the time of the incident's last change in the SIEM and has a time zone.

        `changed_at` determines which version is newer. If it were the time of the read, the version
        that is read last would always count as newer.
        """
        async with self.harness() as harness:
            harness.differing("the time of the last change", changed_at=harness.clock.now() - _SKEW)
            case = harness.put()
            await harness.arrive()
            case = harness.change(case, title="New title")
            harness.clock.advance(minutes=3)
            await harness.arrive()
            found = harness.incident(case).changed_at
            if found is None:
                raise RuleViolation(
                    "no `changed_at`; if the vendor has none, replace this rule with `exempt`"
                )
            expect(found.tzinfo is not None, f"{found} has no time zone")
            expect(abs(found - case.changed_at) < PRECISION, f"{found} for {case.changed_at}")

    @rule
    async def test_a_siem_whose_clock_is_ahead_is_read(self) -> None:
        """All changes arrive promptly from a SIEM whose clock is five minutes ahead.

        According to the local clock, this SIEM's times are in the future. A provider that relies on
        the local clock would delay or lose the changes.
        """
        async with self.harness(most_per_page=PAGE) as harness:
            harness.siem.skew = _SKEW
            for _ in range(3):
                harness.put_many(PAGE)
                await harness.arrive()
                await harness.arrive()
                harness.expect_all()

    @rule
    async def test_a_siem_whose_clock_is_behind_is_read(self) -> None:
        """All changes arrive from a SIEM whose clock is five minutes behind.

        According to the local clock, a change in this SIEM is five minutes old as soon as it
        happens, so it can belong to an interval that has already been read.
        """
        async with self.harness(most_per_page=PAGE) as harness:
            harness.siem.skew = -_SKEW
            for _ in range(4):
                harness.put_many(PAGE)
                await harness.arrive()
                harness.clock.advance(minutes=4)
            await harness.arrive()
            harness.expect_all()

    @rule
    async def test_time_comes_from_the_clock(self) -> None:
        """The provider gets the time only from `tools.clock`.

        Tests and replays use a time that differs from the machine's clock.
        """
        async with self.harness() as harness:
            harness.clock.advance(days=2_000)
            harness.put()
            await harness.arrive()
            harness.put()
            await harness.arrive()
            harness.expect_all()


def _merge_intervals(harness: HttpHarness) -> list[Covered]:
    """Return the covered time intervals, the earliest first."""
    found = [interval for interval in harness.store.covered if isinstance(interval.start, datetime)]
    expect(found, "no page reports `covered` intervals")
    return sorted(found, key=_start)


def _expect_read(harness: HttpHarness) -> None:
    """Check that every incident in a covered interval was delivered."""
    for interval in harness.store.covered:
        for case in harness.siem.truth().values():
            if not interval.lost and _start(interval) <= case.changed_at < _end(interval):
                harness.incident(case)


def _start(interval: Covered) -> datetime:
    return _to_datetime(interval.start)


def _end(interval: Covered) -> datetime:
    return _to_datetime(interval.end)


def _to_datetime(value: datetime | int) -> datetime:
    if isinstance(value, int):
        does_not_apply("the provider accounts for file positions, not for times")
    expect(value.tzinfo is not None, f"{value} in `covered` has no time zone")
    return value
