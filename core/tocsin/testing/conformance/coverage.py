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
    """Which stretches of time a provider accounts for."""

    @rule
    async def test_what_was_read_is_covered_without_gaps(self) -> None:
        """`covered` begins where it ended before: no stretch of time is left out.

        The ledger is how an operator knows that nothing is missing; a gap in it is filled again.
        """
        async with self.harness(most_per_page=PAGE) as lab:
            for _ in range(3):
                lab.put_many(2 * PAGE)
                await lab.arrive()
                lab.clock.advance(hours=3)
            await lab.arrive()
            for one, next_one in pairwise(_merge_intervals(lab)):
                gap = _start(next_one) > _end(one)
                expect(not gap, f"nothing is covered from {one.end} to {next_one.start}")

    @rule
    async def test_only_what_was_read_is_covered(self) -> None:
        """Every incident of a stretch has arrived when a page says that the stretch is covered.

        A stretch that is covered is never looked at again.
        """
        for stop in range(1, 6):
            async with self.harness(most_per_page=PAGE) as lab:
                lab.put_many(4 * PAGE)
                lab.settle()
                await lab.reader.read(stop)
                lab.simulator.fail(Fault.THROTTLED)
                await lab.reader.failure()
                _expect_read(lab)

    @rule
    async def test_nothing_is_covered_before_it_happens(self) -> None:
        """`covered` ends at the moment of the read at the latest, and comes near it in the end.

        What happens later would be taken for read.
        """
        async with self.harness() as lab:
            lab.put()
            await lab.arrive()
            lab.clock.advance(hours=1)
            await lab.reader.read()
            latest = max(map(_end, _merge_intervals(lab)))
            expect(latest <= lab.siem.now(), f"{latest} is covered at {lab.siem.now()}")
            expect(latest >= lab.siem.now() - _SETTLED, f"{latest} is all at {lab.siem.now()}")

    @rule
    async def test_a_version_has_the_siems_time_of_change(self) -> None:
        """`changed_at` is when the SIEM says that it changed, with its zone.

        It decides which of two versions is newer; by our clock, the one that is read last wins.
        """
        async with self.harness() as lab:
            lab.differing("when an incident changed", changed_at=lab.clock.now() - _SKEW)
            case = lab.put()
            await lab.arrive()
            case = lab.change(case, title="New title")
            lab.clock.advance(minutes=3)
            await lab.arrive()
            found = lab.incident(case).changed_at
            if found is None:
                raise RuleViolation(
                    "no `changed_at`; if the vendor has none, replace the rule by `exempt`"
                )
            expect(found.tzinfo is not None, f"{found} without a zone")
            expect(abs(found - case.changed_at) < PRECISION, f"{found} for {case.changed_at}")

    @rule
    async def test_a_siem_whose_clock_is_ahead_is_read(self) -> None:
        """Everything arrives, and soon, from a SIEM whose clock is five minutes ahead.

        By our clock all that it has changed lies in the future, and would wait or be lost.
        """
        async with self.harness(most_per_page=PAGE) as lab:
            lab.siem.skew = _SKEW
            for _ in range(3):
                lab.put_many(PAGE)
                await lab.arrive()
                await lab.arrive()
                lab.expect_all()

    @rule
    async def test_a_siem_whose_clock_is_behind_is_read(self) -> None:
        """Everything arrives from a SIEM whose clock is five minutes behind.

        By our clock it never has anything of the last minutes; what has been taken for read and
        empty then fills.
        """
        async with self.harness(most_per_page=PAGE) as lab:
            lab.siem.skew = -_SKEW
            for _ in range(4):
                lab.put_many(PAGE)
                await lab.arrive()
                lab.clock.advance(minutes=4)
            await lab.arrive()
            lab.expect_all()

    @rule
    async def test_time_is_that_of_its_clock(self) -> None:
        """What time it is, is asked of `tools.clock` alone.

        Tests that move the clock, and a replay of the past, see another day than the machine's.
        """
        async with self.harness() as lab:
            lab.clock.advance(days=2_000)
            lab.put()
            await lab.arrive()
            lab.put()
            await lab.arrive()
            lab.expect_all()


def _merge_intervals(lab: HttpHarness) -> list[Covered]:
    """Return the stretches of time that are covered, the earliest first."""
    found = [it for it in lab.store.covered if isinstance(it.start, datetime)]
    expect(found, "no page says what it covers")
    return sorted(found, key=_start)


def _expect_read(lab: HttpHarness) -> None:
    """Expect that whatever is in a stretch that is covered has been delivered."""
    for stretch in lab.store.covered:
        for case in lab.siem.truth().values():
            if not stretch.lost and _start(stretch) <= case.changed_at < _end(stretch):
                lab.incident(case)


def _start(stretch: Covered) -> datetime:
    return _to_datetime(stretch.start)


def _end(stretch: Covered) -> datetime:
    return _to_datetime(stretch.end)


def _to_datetime(value: datetime | int) -> datetime:
    if isinstance(value, int):
        does_not_apply("it accounts for positions, not for times")
    expect(value.tzinfo is not None, f"{value} is covered, without a zone")
    return value
