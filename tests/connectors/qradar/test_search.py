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


async def test_event_has_source_action_and_target(opened, log):
    log(ADDRESS, Entity(EntityKind.USER, "ann"), Entity(EntityKind.HOST, "laptop-7"))
    async with opened() as provider:
        [event] = await ask(provider)
    assert event.summary == (
        "Made Up of ann from 198.51.100.9 to 203.0.113.80, reported by fw @ 192.0.2.254"
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


async def test_search_is_polled_and_deleted(console, opened, log):
    console.busy_polls = 4
    log(ADDRESS)
    async with opened() as provider:
        assert len(await ask(provider)) == 1
    assert console.searches == {}


async def test_searches_are_unique(console, opened, log):
    log(ADDRESS)
    console.busy_polls = 3
    async with opened() as one, opened() as other:
        found = await asyncio.gather(*(ask(value) for value in (one, one, one, other)))
    assert [len(item) for item in found] == [1] * 4
    assert len(set(console.queries)) == 4


async def test_concurrent_searches_are_limited(console, opened, log):
    log(ADDRESS)
    console.busy_polls, console.most_running = 3, 2
    async with opened(most_searches=2) as provider:
        found = await asyncio.gather(*(ask(provider) for _ in range(6)))
    assert [len(item) for item in found] == [1] * 6


async def test_search_waits_for_free_slots(console, opened):
    console.most_running = 0
    async with opened() as provider:
        with pytest.raises(TryLater, match="503"):
            await ask(provider)


async def test_endless_search_is_canceled_and_deleted(console, opened):
    console.busy_polls = 10_000
    async with opened(search_timeout="20s") as provider:
        with pytest.raises(TryLater, match="did not finish"):
            await ask(provider)
    assert console.searches == {}


@pytest.mark.parametrize(("state", "kind"), [("CANCELED", TryLater), ("ERROR", Broken)])
async def test_failed_search_is_not_an_empty_result(console, opened, state, kind):
    console.ends_as = state
    async with opened() as provider:
        with pytest.raises(kind):
            await ask(provider)
    assert console.searches == {}


async def test_search_with_warnings_is_incomplete(console, opened, log):
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
        with pytest.raises(TryLater, match=r"may be incomplete: host 9 did not answer$"):
            await anext(events)


async def test_deleted_search_is_tried_later(console, opened, log):
    log(ADDRESS)

    def delete():
        if console.searches and console.requests[-1].path.count("/") == 4:
            console.searches.clear()

    async with opened() as provider:
        console.before_each = delete
        console.busy_polls = 3
        with pytest.raises(TryLater, match="deleted by another client"):
            await ask(provider)
        console.before_each = lambda: None
        assert len(await ask(provider)) == 1


async def test_custom_properties_name_configured_kinds(opened, log):
    log(HASH, ADDRESS)
    async with opened(event_properties=PROPERTIES) as provider:
        [event] = await ask(provider, HASH)
        assert HASH in event.entities
        assert event.fields["SHA256 Hash"] == HASH.value
        [same] = await ask(provider)
    assert HASH in same.entities


async def test_unsearchable_kind_is_reported(opened):
    async with opened() as provider:
        with pytest.raises(Refused, match="add one to `event_properties`"):
            await ask(provider, HASH)


async def test_missing_property_is_reported(opened):
    async with opened(event_properties={"url": ["No Such"]}) as provider:
        with pytest.raises(Refused, match="'No Such' does not exist"):
            await ask(provider)


async def test_pattern_near_misses_are_filtered(opened, log):
    log(Entity(EntityKind.USER, "O'Brien"))
    log(Entity(EntityKind.USER, "OxBrien"), minutes=8)
    async with opened() as provider:
        [event] = await ask(provider, Entity(EntityKind.USER, "o'brien"))
    assert event.fields["username"] == "O'Brien"


async def test_too_many_near_misses_are_reported(opened, log):
    log(Entity(EntityKind.USER, "Ж1"), minutes=9)
    for minutes in range(3):
        log(Entity(EntityKind.USER, f"mallory{minutes}1"), minutes=minutes + 1)
    async with opened() as provider:
        with pytest.raises(Refused, match="3 of the latest 3 results did not match"):
            await ask(provider, Entity(EntityKind.USER, "Ж1"), limit=3)
        assert len(await ask(provider, Entity(EntityKind.USER, "Ж1"), limit=5)) == 1


async def test_disabled_search_sends_no_request(console, opened):
    async with opened(search_events=False) as provider:
        with pytest.raises(Refused, match="search_events"):
            await ask(provider)
    assert console.requests == []
