"""Emergency stops: at most one of each thing, which ends at its time or by a person."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tocsin.audit import list_entries
from tocsin.errors import InvalidInputError
from tocsin.stops import (
    StopKind,
    StopOrder,
    begin_stop,
    end_due_stops,
    end_stop,
    find_stop,
    list_stops,
    load_stops,
)

HOUR = timedelta(hours=1)
EDGE = (StopKind.PROVIDER, "edge")


async def test_a_stop_ends_at_its_time_and_the_audit_log_names_it(database, clock):
    order = StopOrder("ana", "The SIEM is overloaded", clock.now() + HOUR)
    stop = await database.write(begin_stop, *EDGE, order, clock.now())
    assert (
        stop.describe() == "by ana (reason: The SIEM is overloaded), until 2026-11-21T13:00:00.000Z"
    )
    assert await database.write(begin_stop, *EDGE, order, clock.now()) is None
    assert await database.read(load_stops, StopKind.PROVIDER, clock.now()) == {"edge": stop}
    assert await database.read(load_stops, StopKind.DESTINATION, clock.now()) == {}
    clock.advance(hours=1)
    assert await database.read(find_stop, *EDGE, clock.now()) is None
    assert await database.write(end_due_stops, StopKind.PROVIDER, clock.now()) == [stop]
    assert await database.write(end_due_stops, StopKind.PROVIDER, clock.now()) == []
    page = await database.read(list_entries, limit=10)
    [entry] = page.entries
    assert (entry["actor"], entry["action"], entry["target"]) == (
        "system",
        "provider.enable",
        "provider:edge",
    )


async def test_a_new_stop_takes_the_place_of_the_current_one(database, clock):
    await database.write(begin_stop, *EDGE, StopOrder("ana"), clock.now())
    clock.advance(minutes=5)
    later = StopOrder("ben", "Longer", clock.now() + HOUR)
    await database.write(begin_stop, *EDGE, later, clock.now())
    clock.advance(minutes=5)
    assert await database.write(end_stop, *EDGE, "ana", clock.now())
    assert not await database.write(end_stop, *EDGE, "ana", clock.now())
    since = clock.now() - timedelta(minutes=7)
    stops = await database.read(list_stops, since, clock.now(), 10)
    assert [(stop.by, stop.ended_by) for stop in stops] == [("ben", "ana"), ("ana", "ben")]
    stops = await database.read(list_stops, since, since, 10)
    assert [stop.by for stop in stops] == ["ana"]
    assert await database.read(list_stops, clock.now(), None, 10) == []


async def test_later_stops_crowd_no_stop_out_of_a_period(database, clock):
    until = clock.now()
    for by in ("ana", "ben", "cy"):
        await database.write(begin_stop, *EDGE, StopOrder(by), clock.now())
        clock.advance(minutes=5)
        await database.write(end_stop, *EDGE, by, clock.now())
    stops = await database.read(list_stops, until - HOUR, until, 2)
    assert [stop.by for stop in stops] == ["ana"]


@pytest.mark.parametrize("length", [timedelta(0), timedelta(days=367)])
async def test_an_end_that_is_past_or_too_far_is_refused(database, clock, length):
    order = StopOrder("ana", until=clock.now() + length)
    with pytest.raises(InvalidInputError, match="at most 366 days"):
        await database.write(begin_stop, *EDGE, order, clock.now())
