"""The OpenSearch provider against the simulator, with a manual clock."""

from __future__ import annotations

from contextlib import aclosing
from datetime import timedelta

import orjson
import pytest
from aiohttp import ClientSession
from tests.connectors.opensearch.simulator import DETECTOR, AnalyticsSimulator, name_of

from tocsin import (
    Broken,
    Capability,
    CredentialsRefused,
    Entity,
    EntityKind,
    IncidentStatus,
    Misconfigured,
    Severity,
    TryLater,
    Window,
)
from tocsin.testing import Case, LogEvent, Siem, open_provider
from tocsin_connectors.siem.opensearch import OpenSearch, tocsin_providers

PLUGIN = "/_plugins/_security_analytics"


@pytest.fixture
async def simulator(clock):
    async with AnalyticsSimulator(Siem(clock)) as simulator:
        yield simulator


@pytest.fixture
async def provider(simulator, clock):
    async with open_provider(
        OpenSearch, clock=clock, url=simulator.url, **simulator.user
    ) as provider:
        yield provider


class Feed:
    """What is read on and on."""

    def __init__(self, provider):
        self.provider, self.positions, self.covered = provider, {}, []

    async def read(self, *streams):
        found, now = [], self.provider.tools.clock.now()
        for stream in streams or self.provider.streams():
            position = self.positions.get(stream)
            async with aclosing(self.provider.read(stream, position, now)) as pages:
                async for page in pages:
                    self.positions[stream] = orjson.loads(orjson.dumps(page.next_position))
                    self.covered += page.covered
                    found += page.incidents
        return found


def case(clock, number=1, **parts):
    now = clock.now()
    given = {
        "id": f"alert-{number}",
        "number": number,
        "title": "Sign-ins that failed",
        "severity": Severity.HIGH,
        "created_at": now,
        "changed_at": now,
    }
    return Case(**given | parts)


def test_plugin_hook_returns_the_provider():
    assert tocsin_providers() is OpenSearch
    able = {Capability.REFRESH, Capability.BACKFILL, Capability.EVENTS, Capability.STATUS}
    assert OpenSearch.capabilities() == able


async def test_changes_of_old_alerts_are_read(simulator, provider, clock):
    feed = Feed(provider)
    put = simulator.siem.put(case(clock, entities=(Entity(EntityKind.IP, "203.0.113.7"),)))
    clock.advance(minutes=2)
    [incident] = await feed.read()
    assert incident.entities == put.entities
    assert incident.techniques == ("T1110.001",)
    clock.advance(days=3)
    assert await feed.read() == []
    simulator.siem.put(case(clock, status=IncidentStatus.ACTIVE, created_at=put.created_at))
    clock.advance(minutes=10)
    [again] = await feed.read()
    assert (again.external_id, again.status) == (name_of(put), IncidentStatus.ACTIVE)


async def test_changes_are_read_periodically(simulator, provider, clock):
    feed = Feed(provider)
    clock.advance(minutes=5)
    await feed.read()
    simulator.requests.clear()
    for _ in range(10):
        clock.advance(minutes=1)
        await feed.read("changed")
    looks = [request for request in simulator.requests if request.path.endswith("/alerts")]
    assert len(looks) == 2
    assert {int(look.query["endTime"]) - int(look.query["startTime"]) for look in looks} <= {
        int((timedelta(days=7) + timedelta(minutes=minutes)).total_seconds() * 1000) - 1
        for minutes in (15, 20)
    }


async def test_one_list_serves_all_overdue_hours(simulator, provider, clock):
    feed, put = Feed(provider), simulator.siem.put(case(clock))
    clock.advance(hours=1)
    simulator.siem.put(case(clock, status=IncidentStatus.ACTIVE, created_at=put.created_at))
    clock.advance(hours=20)
    [found] = await feed.read("changed")
    assert found.status is IncidentStatus.ACTIVE
    assert sum(request.path.endswith("/alerts") for request in simulator.requests) == 1


async def test_broken_alert_hides_no_changes_of_others(simulator, provider, clock):
    feed, cases = Feed(provider), []
    for number in range(8):
        cases.append(simulator.siem.put(case(clock, number)))
        clock.advance(hours=5)
    await feed.read()
    simulator.siem.poisoned.add("alert-3")
    for number, before in enumerate(cases):
        changed = case(clock, number, status=IncidentStatus.CLOSED, created_at=before.created_at)
        simulator.siem.put(changed)
    clock.advance(minutes=10)
    feed.covered.clear()
    names = {value.external_id for value in await feed.read("changed")}
    assert names == {name_of(item) for item in cases if item.id != "alert-3"}
    [lost] = [interval for interval in feed.covered if interval.lost]
    simulator.siem.poisoned.clear()
    window = Window(lost.start, lost.end)
    async with aclosing(provider.backfill("changed", None, window)) as pages:
        found = {incident.external_id async for page in pages for incident in page.incidents}
    assert name_of(cases[3]) in found


async def test_more_alerts_than_the_paging_limit_are_read(simulator, provider, clock, monkeypatch):
    monkeypatch.setattr("tests.connectors.opensearch.simulator.MAX_RESULT_WINDOW", 125)
    monkeypatch.setattr("tocsin_connectors.siem.opensearch.pagination.MAX_ROWS", 25)
    for number in range(120):
        simulator.siem.put(case(clock, number))
        clock.advance(seconds=1)
    clock.advance(minutes=2)
    assert len({incident.external_id for incident in await Feed(provider).read("new")}) == 120


async def test_throttled_cluster_is_read_completely(simulator, provider, clock):
    for number in range(40):
        simulator.siem.put(case(clock, number))
    simulator.most_per_minute = 8
    clock.advance(minutes=2)
    feed = Feed(provider)
    for _ in range(20):
        try:
            await feed.read()
        except TryLater as busy:
            clock.advance(seconds=busy.after.total_seconds())
        else:
            break
    assert max(interval.end for interval in feed.covered) > clock.now() - timedelta(minutes=6)


async def test_api_treats_invalid_bounds_as_now(simulator, clock):
    simulator.siem.put(case(clock))
    clock.advance(minutes=2)
    headers = {"Authorization": "Basic dG9jc2luOmEgc2VjcmV0"}
    asked = f"{simulator.url}{PLUGIN}/alerts?detector_id={DETECTOR}&startTime="
    counts = []
    async with ClientSession(headers=headers) as session:
        for start in ("2026-11-21T00:00:00Z", "0"):
            async with session.get(asked + start) as answer:
                counts.append((await answer.json())["total_alerts"])
    assert counts == [0, 1]


async def test_missing_detectors_are_misconfigured(simulator, provider):
    simulator.detectors = {}
    with pytest.raises(Misconfigured, match="no Security Analytics detector"):
        await Feed(provider).read()
    assert (await provider.check()).problems == (
        "no Security Analytics detector is visible to the user",
    )


async def test_check_reports_all_missing_permissions(simulator, provider):
    analytics = "cluster:admin/opensearch/securityanalytics"
    simulator.lacks = {
        *(f"{analytics}/alerts/get", f"{analytics}/findings/get", "indices:data/read/search"),
    }
    problems = (await provider.check()).problems
    assert {
        problem.removeprefix("the user's role lacks ") for problem in problems
    } == simulator.lacks
    simulator.lacks = {f"{analytics}/detector/search"}
    [problem] = (await provider.check()).problems
    assert "detector/search" in problem


async def test_deleted_detector_breaks_nothing(simulator, provider, clock):
    simulator.detectors = {"another": "Linux logs", DETECTOR: "Windows logs"}
    put = simulator.siem.put(case(clock))
    clock.advance(minutes=2)
    [incident] = await Feed(provider).read()
    assert incident.description == "Detector: Windows logs"
    simulator.detectors = {"another": "Linux logs"}
    assert await provider.incident(name_of(put)) is None


async def test_events_are_searched_in_detector_indexes(simulator, provider, clock):
    ann = Entity(EntityKind.USER, "ann")
    now = clock.now()
    simulator.siem.log(LogEvent(id="1", occurred_at=now, entities=(ann,), text="signed in"))
    window = Window(now - timedelta(hours=1), now + timedelta(hours=1))
    [event] = [event async for event in provider.events(ann, window, 10)]
    assert event.summary == "signed in"
    assert simulator.requests[-1].path == "/logs-windows/_search"
    bodies = orjson.dumps(simulator.searches)
    assert b'"value":"ann"' in bodies
    assert b"query_string" not in bodies
    simulator.shards = simulator.shards | {"failed": 1}
    with pytest.raises(TryLater, match="1 of 3 shards did not respond"):
        [event async for event in provider.events(ann, window, 10)]


async def test_two_clusters_are_read_concurrently(clock):
    async with AnalyticsSimulator(Siem(clock)) as one, AnalyticsSimulator(Siem(clock)) as other:
        own = {"dashboard_url": "https://dashboards.example.com"}
        opening = open_provider(OpenSearch, clock=clock, name="a", url=one.url, **one.user, **own)
        async with (
            opening as first,
            open_provider(OpenSearch, clock=clock, name="b", url=other.url, **one.user) as second,
        ):
            one.siem.put(case(clock, title="in the one"))
            other.siem.put(case(clock, title="in the other"))
            clock.advance(minutes=2)
            one.siem.poisoned.add("alert-1")
            with pytest.raises(Broken):
                await Feed(first).read("new")
            assert [item.title for item in await Feed(second).read()] == ["in the other"]
            one.siem.poisoned.clear()
            [incident] = await Feed(first).read()
            assert incident.title == "in the one"
            assert incident.source_url.startswith("https://dashboards.example.com/app/")


async def test_wrong_credentials_are_reported(simulator, clock):
    wrong = {"url": simulator.url, "username": "tocsin", "password": "wrong"}
    async with open_provider(OpenSearch, clock=clock, **wrong) as provider:
        with pytest.raises(CredentialsRefused, match="returned 401"):
            await provider.check()
