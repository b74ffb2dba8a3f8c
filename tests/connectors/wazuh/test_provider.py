"""The Wazuh provider against the simulator, with a manual clock."""

from __future__ import annotations

from contextlib import aclosing
from datetime import timedelta

import orjson
import pytest
from tests.connectors.wazuh.simulator import FindingsSimulator, WazuhSimulator, group_of

from tocsin import (
    Capability,
    CredentialsRefused,
    Entity,
    EntityKind,
    Misconfigured,
    Severity,
    TryLater,
    Window,
)
from tocsin.testing import Case, Siem, open_provider
from tocsin_connectors.siem.wazuh import Wazuh, tocsin_providers

RULE = "5710"


@pytest.fixture(params=[WazuhSimulator, FindingsSimulator])
async def simulator(request, clock):
    async with request.param(Siem(clock)) as simulator:
        yield simulator


@pytest.fixture
async def provider(simulator, clock):
    async with open_provider(
        Wazuh, clock=clock, url=simulator.url, **simulator.user, min_severity="Low"
    ) as provider:
        yield provider


class Feed:
    """What is read on and on."""

    def __init__(self, provider):
        self.provider, self.position = provider, None

    async def read(self):
        found, now = [], self.provider.tools.clock.now()
        async with aclosing(self.provider.read("changed", self.position, now)) as pages:
            async for page in pages:
                self.position = orjson.loads(orjson.dumps(page.next_position))
                found += page.incidents
        return found


def fire(simulator, clock, **parts):
    now = clock.now()
    given = {
        "id": RULE,
        "number": 1,
        "title": "Guessed password",
        "severity": Severity.MEDIUM,
        "created_at": now,
        "changed_at": now,
    }
    return simulator.siem.put(Case(**given | parts))


def test_plugin_hook_returns_the_provider():
    assert tocsin_providers() is Wazuh
    assert Wazuh.capabilities() == {Capability.REFRESH, Capability.BACKFILL, Capability.EVENTS}


async def test_hundreds_of_alerts_are_one_incident(simulator, provider, clock):
    for _ in range(250):
        last = fire(simulator, clock)
        clock.advance(seconds=1)
    clock.advance(minutes=2)
    incidents = await Feed(provider).read()
    assert {incident.external_id for incident in incidents} == {group_of(last)}
    assert len({alert.external_id for incident in incidents for alert in incident.alerts}) == 250
    assert {incident.description.partition(" on ")[0] for incident in incidents} == {
        "Rule 5710 fired 250 times"
    }
    assert (
        len([search for search in simulator.searches if "aggs" in search]) == 3
    )  # once for a page


async def test_quiet_read_needs_no_counts(simulator, provider, clock):
    feed = Feed(provider)
    fire(simulator, clock)
    clock.advance(minutes=2)
    await feed.read()
    simulator.searches.clear()
    clock.advance(minutes=1)
    assert await feed.read() == []
    assert [search["size"] for search in simulator.searches] == [200]


async def test_late_alerts_are_counted(simulator, provider, clock):
    feed = Feed(provider)
    first = fire(simulator, clock)
    clock.advance(seconds=1)
    fire(simulator, clock, visible_at=clock.now() + timedelta(minutes=25))
    clock.advance(seconds=1)
    fire(simulator, clock, visible_at=clock.now() + timedelta(minutes=50))
    for minutes, count in ((2, "once"), (24, "2 times")):
        clock.advance(minutes=minutes)
        [incident] = await feed.read()
        assert f"fired {count} " in incident.description
    for minutes in (22, 12):
        clock.advance(minutes=minutes)
        assert await feed.read() == []
    again = await provider.incident(group_of(first))
    assert "fired 3 times" in again.description
    assert len(again.alerts) == 3


async def test_minimum_level_is_filtered(simulator, clock):
    for severity in Severity:
        fire(simulator, clock, id=f"rule-{severity}", severity=severity)
    words = isinstance(simulator, FindingsSimulator)  # a level of 4.x is always a number
    if words:
        fire(simulator, clock, id="rule-x", severity="x-unheard-of")
    clock.advance(minutes=2)
    settings = {"url": simulator.url, **simulator.user, "min_severity": "high"}
    async with open_provider(Wazuh, clock=clock, **settings) as provider:
        found = {incident.external_number for incident in await Feed(provider).read()}
    assert found == {"rule-High", "rule-Critical", *(["rule-x"] if words else [])}


async def test_many_alerts_of_one_millisecond_are_read(simulator, provider, clock):
    simulator.most_per_page = 7
    for number in range(40):
        fire(simulator, clock, id=f"rule-{number}")  # with one and the same field `id`
    clock.advance(minutes=2)
    assert len({incident.external_id for incident in await Feed(provider).read()}) == 40


@pytest.mark.parametrize("part", ["timed_out", "failed"])
async def test_partial_search_is_retried(simulator, provider, clock, part):
    fire(simulator, clock)
    clock.advance(minutes=2)
    feed, whole = Feed(provider), simulator.shards
    simulator.timed_out = part == "timed_out"
    failures = [{"reason": {"type": "x", "reason": "shard is\nnot available"}}]
    if part == "failed":
        simulator.shards = whole | {"failed": 1, "failures": failures}
    with pytest.raises(TryLater, match="partial results") as caught:
        await feed.read()
    assert "\n" not in str(caught.value)
    simulator.timed_out, simulator.shards = False, whole
    assert len(await feed.read()) == 1


async def test_index_pattern_without_match_is_misconfigured(simulator, provider):
    simulator.shards = {"total": 0, "successful": 0, "skipped": 0, "failed": 0}
    with pytest.raises(Misconfigured, match="no index matches wazuh-alerts"):
        await Feed(provider).read()
    [problem] = (await provider.check()).problems
    assert "wazuh-findings-v5-*" in problem


async def test_check_reports_missing_permission(simulator, provider):
    simulator.lacks = {"indices:data/read/search"}
    [problem] = (await provider.check()).problems
    assert problem == "the user's role lacks indices:data/read/search"
    with pytest.raises(CredentialsRefused):
        await Feed(provider).read()


async def test_entities_are_only_values_of_queries(simulator, provider, clock):
    fire(simulator, clock, entities=(Entity(EntityKind.USER, "ann"),))
    window = Window(clock.now() - timedelta(hours=1), clock.now() + timedelta(hours=1))
    hostile = '*" OR user.name:*'
    for name, count in (("ANN", 1), (hostile, 0), ("an", 0)):
        asked = Entity(EntityKind.USER, name)
        assert len([event async for event in provider.events(asked, window, 10)]) == count
    bodies = orjson.dumps(simulator.searches)
    assert orjson.dumps({"value": hostile, "case_insensitive": True}) in bodies
    assert b"query_string" not in bodies


async def test_two_clusters_are_read_concurrently(clock):
    async with WazuhSimulator(Siem(clock)) as one, FindingsSimulator(Siem(clock)) as other:
        own = {"min_severity": "Low", "dashboard_url": "https://wazuh.example.com"}
        async with (
            open_provider(Wazuh, clock=clock, name="a", url=one.url, **one.user, **own) as first,
            open_provider(Wazuh, clock=clock, name="b", url=other.url, **one.user) as second,
        ):
            fire(one, clock, title="in the one")
            fire(other, clock, title="in the other")
            clock.advance(minutes=2)
            one.lacks = {"indices:data/read/search"}
            with pytest.raises(CredentialsRefused):
                await Feed(first).read()
            assert [item.title for item in await Feed(second).read()] == ["in the other"]
            one.lacks = set()
            [incident] = await Feed(first).read()
            assert (incident.title, second.settings.dashboard_url) == ("in the one", None)
            assert incident.source_url.startswith("https://wazuh.example.com/app/discover#/?_g=")
