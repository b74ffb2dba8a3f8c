"""Ariel searches: waiting, unique queries, failures."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from tocsin import Broken, Entity, EntityKind, Refused, TryLater, Window
from tocsin.testing import LogEvent

ADDRESS = Entity(EntityKind.IP, "198.51.100.9")
HASH = Entity(EntityKind.FILE_HASH, "ab" * 32)
PROPERTIES = {"file_hash": ["SHA256 Hash"], "url": ["URL"]}


async def ask(provider, entity=ADDRESS, limit=10):
    now = provider.tools.clock.now()
    window = Window(now - timedelta(hours=1), now)
    return [event async for event in provider.events(entity, window, limit)]


@pytest.fixture
def log(console, clock):
    def log(*entities, minutes=7, **parts):
        at = clock.now() - timedelta(minutes=minutes)
        log_event = LogEvent(id="e", occurred_at=at, entities=entities, text="x", **parts)
        return console.siem.log(log_event)

    return log


async def test_an_event_tells_who_did_what_to_whom(opened, log):
    log(ADDRESS, Entity(EntityKind.USER, "ann"), Entity(EntityKind.HOST, "laptop-7"))
    async with opened() as provider:
        [event] = await ask(provider)
    assert event.summary == (
        "Made Up of ann from 198.51.100.9 to 203.0.113.80, told by fw @ 192.0.2.254"
    )
    assert [(entity.kind.value, entity.value) for entity in event.entities] == [
        ("ip", "198.51.100.9"),
        ("ip", "203.0.113.80"),
        ("user", "ann"),
        ("host", "laptop-7"),
    ]
    [relation] = event.relations
    assert (relation.source, relation.type) == (ADDRESS, "connected-to")
    assert event.fields["destinationport"] == "443"


async def test_a_search_is_asked_for_until_it_is_done_and_deleted(console, opened, log):
    console.busy_polls = 4
    log(ADDRESS)
    async with opened() as provider:
        assert len(await ask(provider)) == 1
    assert console.searches == {}


async def test_no_two_searches_are_alike(console, opened, log):
    log(ADDRESS)
    console.busy_polls = 3
    async with opened() as one, opened() as other:
        found = await asyncio.gather(*(ask(value) for value in (one, one, one, other)))
    assert [len(item) for item in found] == [1] * 4
    assert len(set(console.queries)) == 4


async def test_only_so_many_searches_are_under_way_at_once(console, opened, log):
    log(ADDRESS)
    console.busy_polls, console.most_running = 3, 2
    async with opened(most_searches=2) as provider:
        found = await asyncio.gather(*(ask(provider) for _ in range(6)))
    assert [len(item) for item in found] == [1] * 6


async def test_too_many_searches_of_others_are_waited_out(console, opened):
    console.most_running = 0
    async with opened() as provider:
        with pytest.raises(TryLater, match="503"):
            await ask(provider)


async def test_a_search_that_never_ends_is_given_up_and_deleted(console, opened):
    console.busy_polls = 10_000
    async with opened(search_timeout="20s") as provider:
        with pytest.raises(TryLater, match="not done"):
            await ask(provider)
    assert console.searches == {}


@pytest.mark.parametrize(("state", "kind"), [("CANCELED", TryLater), ("ERROR", Broken)])
async def test_a_search_that_comes_to_nothing_is_no_absence_of_events(console, opened, state, kind):
    console.ends_as = state
    async with opened() as provider:
        with pytest.raises(kind):
            await ask(provider)
    assert console.searches == {}


async def test_a_search_that_warns_is_not_taken_for_whole(console, opened, log):
    log(ADDRESS)
    console.error_messages = [
        {"severity": "INFO", "message": "cached"},
        {"severity": "WARN", "message": "host 9 did not answer"},
    ]
    async with opened() as provider:
        now = provider.tools.clock.now()
        window = Window(now - timedelta(hours=1), now)
        events = provider.events(ADDRESS, window, 10)
        assert await anext(events)
        with pytest.raises(TryLater, match=r"not be whole: host 9 did not answer$"):
            await anext(events)


async def test_a_search_that_somebody_deletes_is_made_again_later(console, opened, log):
    log(ADDRESS)

    def delete():
        if console.searches and console.requests[-1].path.count("/") == 4:
            console.searches.clear()

    async with opened() as provider:
        console.before_each = delete
        console.busy_polls = 3
        with pytest.raises(TryLater, match="deleted by somebody else"):
            await ask(provider)
        console.before_each = lambda: None
        assert len(await ask(provider)) == 1


async def test_a_custom_property_names_what_it_is_said_to(opened, log):
    log(HASH, ADDRESS)
    async with opened(event_properties=PROPERTIES) as provider:
        [event] = await ask(provider, HASH)
        assert HASH in event.entities
        assert event.fields["SHA256 Hash"] == HASH.value
        [same] = await ask(provider)
    assert HASH in same.entities


async def test_what_no_field_names_is_a_gap_and_not_nothing(opened):
    async with opened() as provider:
        with pytest.raises(Refused, match="name what does in `event_properties`"):
            await ask(provider, HASH)


async def test_a_property_that_there_is_not_is_told(opened):
    async with opened(event_properties={"url": ["No Such"]}) as provider:
        with pytest.raises(Refused, match="'No Such' does not exist"):
            await ask(provider)


async def test_near_misses_of_a_pattern_are_left_out(opened, log):
    log(Entity(EntityKind.USER, "O'Brien"))
    log(Entity(EntityKind.USER, "OxBrien"), minutes=8)
    async with opened() as provider:
        [event] = await ask(provider, Entity(EntityKind.USER, "o'brien"))
    assert event.fields["username"] == "O'Brien"


async def test_near_misses_that_leave_no_room_are_not_taken_for_an_absence(opened, log):
    log(Entity(EntityKind.USER, "Ж1"), minutes=9)
    for minutes in range(3):
        log(Entity(EntityKind.USER, f"mallory{minutes}1"), minutes=minutes + 1)
    async with opened() as provider:
        with pytest.raises(Refused, match="of the latest 3 events found, 3 are others"):
            await ask(provider, Entity(EntityKind.USER, "Ж1"), limit=3)
        assert len(await ask(provider, Entity(EntityKind.USER, "Ж1"), limit=5)) == 1


async def test_switched_off_nothing_is_asked(console, opened):
    async with opened(search_events=False) as provider:
        with pytest.raises(Refused, match="search_events"):
            await ask(provider)
    assert console.requests == []
