"""Rules for timestamps: precision, time zones, odd numbers."""

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
    """How a provider reads times."""

    @rule
    async def test_fractions_of_any_length_are_read(self) -> None:
        """Times with seven and nine digits of a second are read, and mean what they say.

        Vendors write 100 ns or 1 ns; what cannot read that loses the whole record.
        """
        async with self.harness() as lab:
            _has_times(lab)
            for digits in (7, 9):
                lab.alter = change_texts(with_digits(digits))
                await _expect_time(lab)

    @rule
    async def test_times_of_other_zones_are_read(self) -> None:
        """A time is read with the offset that it is written with.

        Some SIEMs write their local time: without the offset all is off by hours.
        """
        async with self.harness() as lab:
            _has_times(lab)
            lab.alter = change_texts(with_offset(timedelta(hours=5, minutes=45)))
            await _expect_time(lab)

    @rule
    async def test_odd_numbers_for_times_lose_nothing(self) -> None:
        """A record whose times are numbers of another unit, or of no time, is read or rejected.

        Vendors change from seconds to milliseconds, and write 0 or the largest number for never.
        """
        async with self.harness() as lab:
            places = _numbers(lab)
            for change in _CHANGES:
                lab.alter = put_at(places, change)
                case, rejected = lab.put(), len(lab.store.rejected)
                await lab.arrive()
                came = self.external_id(case) in lab.store.incidents
                seen = f"neither read nor rejected: {lab.show(case)}"
                expect(came or len(lab.store.rejected) > rejected, seen)

    @rule
    async def test_times_without_a_zone_are_never_local(self) -> None:
        """A time without a zone is taken for UTC or rejected, wherever this machine stands.

        Taken for local time, everything moves by hours, and twice a year by one more.
        """
        async with self.harness() as lab:
            _has_times(lab)
            lab.alter = change_texts(without_zone)
            with _in_new_york():
                case = lab.put()
                await lab.arrive()
            found = lab.store.incidents.get(self.external_id(case))
            expect(found or lab.store.rejected, "the record is neither read nor rejected")
            if found:
                _expect_same(case, found.occurred_at)


def _has_times(lab: Harness) -> None:
    if not any(parse_moment(text) for text in iter_texts(lab.render(lab.case()))):
        does_not_apply("its records have no times in ISO 8601")


def _numbers(lab: Harness) -> list[Path]:
    """Return where a record has times that are numbers; skip where it has none."""
    earlier = lab.clock.now() - timedelta(hours=1)
    places = lab.differing("when an incident began", created_at=earlier)
    record = lab.render(lab.case())
    numbers = [place for place in places if isinstance(value_at(record, place), int | float)]
    return numbers or does_not_apply("its records have no times that are numbers")


def _times(factor: float, value: Json) -> Json:
    return int(value * factor)


def _always(number: float, _: Json) -> Json:
    return number


_CHANGES: tuple[Callable[[Json], Json], ...] = (
    *(partial(_times, factor) for factor in (1000, 0.001)),
    *(partial(_always, number) for number in _NEVER),
)


async def _expect_time(lab: Harness) -> None:
    case = lab.put(created_at=lab.clock.now() - timedelta(minutes=7, microseconds=123_456))
    await lab.arrive()
    _expect_same(case, lab.incident(case).occurred_at)


def _expect_same(case: Case, moment: datetime) -> None:
    expect(moment.tzinfo is not None, f"{moment} without a zone")
    expect(abs(moment - case.created_at) < PRECISION, f"{moment} for {case.created_at}")


@contextmanager
def _in_new_york() -> Iterator[None]:
    """Have this machine stand in New York."""
    with patch.dict(os.environ, TZ=_NEW_YORK):
        time.tzset()
        yield
    time.tzset()
