"""Rules for the precision, time zones and units of timestamps."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from unittest.mock import patch

from tocsin.model import Json
from tocsin.testing.conformance.harness import Conformance, Harness
from tocsin.testing.conformance.record_shapes import (
    Path,
    change_texts,
    iter_texts,
    parse_moment,
    parse_number,
    put_at,
    value_at,
    with_digits,
    with_offset,
    without_zone,
)
from tocsin.testing.conformance.records import PRECISION
from tocsin.testing.conformance.rules import does_not_apply, expect, rule
from tocsin.testing.siem import Case

_NEVER = (0, -1, 2**31 - 1, 2**63 - 1, 1e300)
_NEW_YORK = "EST5EDT,M3.2.0,M11.1.0"


class TimeRules(Conformance):
    """Rules for the timestamps of records."""

    @rule
    async def test_fractions_of_any_length_are_read(self) -> None:
        """Timestamps with seven or nine fractional digits are read correctly.

        Some vendors write timestamps with a precision of 100 ns or 1 ns. If the parser fails on
        such a timestamp, the record is lost.
        """
        async with self.harness() as harness:
            _has_times(harness)
            for digits in (7, 9):
                harness.alter = change_texts(with_digits(digits))
                await _expect_time(harness)

    @rule
    async def test_times_of_other_zones_are_read(self) -> None:
        """Timestamps are read with their UTC offset.

        Some SIEMs write local time. Without the offset, all times are wrong by hours.
        """
        async with self.harness() as harness:
            _has_times(harness)
            harness.alter = change_texts(with_offset(timedelta(hours=5, minutes=45)))
            await _expect_time(harness)

    @rule
    async def test_odd_numeric_times_are_handled(self) -> None:
        """If a record's times have another unit or special values, the record is read or rejected.

        Vendors change from seconds to milliseconds, and write 0 or the largest number for "never".
        Such a time must not keep other incidents from arriving.
        """
        async with self.harness() as harness:
            places = _numbers(harness)
            for change in _CHANGES:
                harness.alter = put_at(places, change)
                case, rejected = harness.put(), len(harness.store.rejected)
                await harness.arrive()
                came = self.external_id(case) in harness.store.incidents
                seen = f"neither read nor rejected: {harness.show(case)}"
                expect(came or len(harness.store.rejected) > rejected, seen)

    @rule
    async def test_times_without_a_zone_are_never_local(self) -> None:
        """A timestamp without a time zone counts as UTC or is rejected, regardless of the local
        time zone.

        If it counted as local time, it would be wrong by hours, and by a different number of hours
        in summer and winter.
        """
        async with self.harness() as harness:
            _has_times(harness)
            harness.alter = change_texts(without_zone)
            with _in_new_york():
                case = harness.put()
                await harness.arrive()
            found = harness.store.incidents.get(self.external_id(case))
            expect(found or harness.store.rejected, "the record is neither read nor rejected")
            if found:
                _expect_same(case, found.occurred_at)


def _has_times(harness: Harness) -> None:
    if not any(parse_moment(text) for text in iter_texts(harness.render(harness.case()))):
        does_not_apply("its records have no times in ISO 8601")


def _numbers(harness: Harness) -> list[Path]:
    """Return the paths of numeric times; skip the rule if there are none."""
    earlier = harness.clock.now() - timedelta(hours=1)
    places = harness.differing("the start time of an incident", created_at=earlier)
    record = harness.render(harness.case())
    numbers = [place for place in places if parse_number(value_at(record, place)) is not None]
    return numbers or does_not_apply("its records have no numeric times")


def _times(factor: float, value: Json) -> Json:
    return _spell(int((parse_number(value) or 0) * factor), value)


def _always(number: float, value: Json) -> Json:
    return _spell(number, value)


def _spell(number: float, like: Json) -> Json:
    """Return a number, as text if the vendor writes it so."""
    return str(number) if isinstance(like, str) else number


_CHANGES: tuple[Callable[[Json], Json], ...] = (
    *(partial(_times, factor) for factor in (1000, 0.001)),
    *(partial(_always, number) for number in _NEVER),
)


async def _expect_time(harness: Harness) -> None:
    case = harness.put(created_at=harness.clock.now() - timedelta(minutes=7, microseconds=123_456))
    await harness.arrive()
    _expect_same(case, harness.incident(case).occurred_at)


def _expect_same(case: Case, moment: datetime) -> None:
    expect(moment.tzinfo is not None, f"{moment} has no time zone")
    expect(abs(moment - case.created_at) < PRECISION, f"{moment} for {case.created_at}")


@contextmanager
def _in_new_york() -> Iterator[None]:
    """Set the machine's time zone to New York."""
    with patch.dict(os.environ, TZ=_NEW_YORK):
        time.tzset()
        yield
    time.tzset()
