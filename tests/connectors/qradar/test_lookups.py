"""Lookups of the names of offenses: batches, caching, retries."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from tocsin import Broken, TryLater
from tocsin.testing import Fault
from tocsin_connectors.siem.qradar import lookups
from tocsin_connectors.siem.qradar.lookups import MAX_ADDRESSES

from .simulator import RULE
from .streams import Reading, address, asked


async def test_addresses_of_a_page_are_requested_once(console, opened, put):
    for number in range(40):
        put(entities=(address(number), address(number + 1)))
    async with opened() as provider:
        found = await Reading(provider)("changed")
        again = await provider.incident("7")
    assert len(asked(console, "/api/siem/source_addresses")) == 1
    assert {entity for incident in found for entity in incident.entities} == set(
        map(address, range(41))
    )
    assert set(again.entities) == {address(6), address(7)}


async def test_addresses_of_new_offenses_are_requested_together(console, opened, put, clock):
    async with opened() as provider:
        read = Reading(provider)
        await read()
        for number in range(20):
            put(entities=(address(number),))
        clock.advance(minutes=1)
        found = await read("new")
    assert len(asked(console, "/api/siem/source_addresses")) == 1
    assert [incident.entities for incident in found] == [(address(number),) for number in range(20)]


async def test_addresses_are_requested_in_batches(console, opened, put):
    put(entities=tuple(address(number) for number in range(MAX_ADDRESSES + 5)))
    async with opened() as provider:
        [incident] = await Reading(provider)("changed")
    batches = [
        len(request.query["filter"].split(","))
        for request in asked(console, "/api/siem/source_addresses")
    ]
    assert batches == [50] * 4
    assert len(incident.entities) == MAX_ADDRESSES
    assert "More than 200 addresses" in incident.description


async def test_rule_names_expire(console, opened, put, clock):
    put()
    async with opened() as provider:
        [first] = await Reading(provider)("changed")
        console.rules[RULE] = "Renamed"
        assert (await provider.incident("1")).alerts == first.alerts
        clock.advance(hours=2)
        assert (await provider.incident("1")).alerts[0].title == "Renamed"


async def test_unreadable_rules_have_numbers_and_are_requested_once(console, opened, put):
    console.lacks = {"View Custom Rules"}
    put()
    async with opened() as provider:
        [incident] = await Reading(provider)("changed")
        await provider.incident("1")
    assert [alert.title for alert in incident.alerts] == [f"Rule {RULE}"]
    assert len(asked(console, "/api/analytics/rules")) == 1


async def test_failing_lookup_is_retried_and_then_skipped(console, opened, put, clock):
    put(entities=(address(1),))
    console.fail(Fault.ERROR, times=99, where="source_addresses")
    async with opened() as provider:
        read = Reading(provider)
        for _ in range(9):
            with pytest.raises(TryLater, match="offense lookup failed"):
                await read("changed")
            clock.advance(seconds=33)
        clock.advance(seconds=33)
        [incident] = await read("changed")
        assert incident.entities == ()
        with pytest.raises(Broken, match="500"):
            await provider.incident("1")
        console.recover()
        assert (await provider.incident("1")).entities == (address(1),)


async def test_failing_kind_of_names_affects_no_other(console, opened, put, clock):
    put(entities=(address(1),))
    console.fail(Fault.ERROR, times=99, where="rules")
    async with opened() as provider:
        read = Reading(provider)
        with pytest.raises(TryLater, match="offense lookup failed"):
            await read("changed")
        clock.advance(minutes=6)
        [incident] = await read("changed")
    assert incident.entities == (address(1),)


@pytest.mark.parametrize("stream", ["new", "changed"])
async def test_unsupported_lookup_affects_no_other(console, opened, put, clock, stream):
    console.absent = {"rules"}
    async with opened() as provider:
        read = Reading(provider)
        await read(stream)
        put(entities=(address(1),))
        clock.advance(minutes=1)
        [incident] = await read(stream)
    assert (incident.entities, incident.alerts[0].title) == ((address(1),), f"Rule {RULE}")


async def test_failing_address_affects_no_other(console, opened, put, clock):
    put(entities=(address(1),))
    put(entities=(address(2),))
    console.breaking = {address(2).value}
    async with opened() as provider:
        read = Reading(provider)
        with pytest.raises(TryLater, match="offense lookup failed"):
            await read("changed")
        clock.advance(minutes=6)
        await read("changed")
    assert [incident.entities for incident in read.incidents] == [(address(1),), ()]


async def test_missing_name_is_requested_on_next_read(console, opened, put, clock):
    put(entities=(address(1),))
    console.untold = {address(1).value}
    async with opened() as provider:
        [incident] = await Reading(provider)("changed")
        assert incident.entities == ()
        console.untold.clear()
        clock.advance(minutes=2)
        assert (await provider.incident("1")).entities == (address(1),)


async def test_offense_without_addresses_is_read_again(console, opened, put, clock):
    put(entities=(address(1),))
    console.untold = {address(1).value}
    async with opened() as provider:
        read = Reading(provider)
        await read("changed")
        console.untold.clear()
        clock.advance(minutes=1)
        [incident] = await read("changed")
        assert incident.entities == (address(1),)
        clock.advance(minutes=1)
        assert await read("changed") == []


async def test_requested_names_are_not_evicted(opened, put):
    put(entities=(address(1),))
    put(entities=tuple(address(number) for number in range(2, 6)))
    put(entities=(address(1), address(6)))
    with patch.object(lookups, "_MAX_NAMES", 5):
        async with opened() as provider:
            for name in "12":
                await provider.incident(name)
            third = await provider.incident("3")
    assert set(third.entities) == {address(1), address(6)}


async def test_name_cache_is_bounded(opened, put):
    for number in range(9):
        put(entities=(address(number),))
    with patch.object(lookups, "_MAX_NAMES", 4):
        async with opened() as provider:
            await Reading(provider)("changed")
            known = provider._lookups._directories["source_address_ids"]._known
    assert len(known) == 4
