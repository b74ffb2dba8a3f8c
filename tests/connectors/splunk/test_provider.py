"""The Splunk provider against the simulator, with a manual clock."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from datetime import timedelta

import orjson
import pytest
from pydantic import ValidationError

from tocsin import (
    Broken,
    Capability,
    Entity,
    EntityKind,
    IncidentStatus,
    Refused,
    Severity,
    TryLater,
    Window,
)
from tocsin.testing import Case, Fault, LogEvent, Siem, make_settings, open_provider
from tocsin_connectors.siem.splunk import Splunk, tocsin_providers

from .simulator import TOKEN, FindingsSimulator, SplunkSimulator

JOBS = "search/v2/jobs"
ADDRESS = Entity(EntityKind.IP, "203.0.113.7")


@pytest.fixture(params=[SplunkSimulator, FindingsSimulator], ids=["version-7", "version-8"])
async def simulator(request, clock):
    async with request.param(Siem(clock)) as simulator:
        yield simulator


@pytest.fixture
async def provider(simulator, clock):
    async with open_provider(Splunk, clock=clock, url=simulator.url, token=TOKEN) as provider:
        yield provider


@pytest.fixture
def put(simulator, clock):
    def put(name="7", **parts):
        now = clock.now()
        given = {"severity": Severity.HIGH, "created_at": now, "changed_at": now}
        case = Case(id=name, number=7, title="Many failed sign-ins", **{**given, **parts})
        return simulator.siem.put(case)

    return put


async def read(provider, positions, streams=None):
    """Read what is new, as the core does, and return the incidents and what was put aside."""
    incidents, rejected = [], []
    for stream in streams or provider.streams():
        pages = provider.read(stream, positions.get(stream), provider.tools.clock.now())
        async with aclosing(pages):
            async for page in pages:
                positions[stream] = orjson.loads(orjson.dumps(page.next_position))
                incidents += page.incidents
                rejected += page.rejected
    return incidents, rejected


async def events(provider, entity=ADDRESS, limit=10):
    now = provider.tools.clock.now()
    found = provider.events(entity, Window(now - timedelta(hours=1), now), limit)
    return [event async for event in found]


def test_plugin_hook_returns_the_provider():
    assert tocsin_providers() is Splunk
    assert Splunk.capabilities() >= {
        Capability.REFRESH,
        Capability.BACKFILL,
        Capability.EVENTS,
        Capability.COMMENT,
    }


async def test_late_findings_are_read_by_index_time(provider, put, clock):
    positions = {}
    await read(provider, positions)
    clock.advance(hours=3)
    put(created_at=clock.now() - timedelta(days=20))
    clock.advance(minutes=2)
    [[incident], _] = await read(provider, positions)
    assert clock.now() - incident.occurred_at > timedelta(days=20)


async def test_review_rereads_the_finding(provider, simulator, put, clock):
    positions = {}
    case = put(entities=(ADDRESS,))
    clock.advance(minutes=2)
    await read(provider, positions)
    clock.advance(hours=5)
    await provider.set_status(simulator.finding_id(case), IncidentStatus.CLOSED)
    clock.advance(minutes=2)
    [[incident], _] = await read(provider, positions, ["reviewed"])
    assert (incident.status, incident.raw_status) == (IncidentStatus.CLOSED, "Closed")
    assert (incident.title, incident.entities) == ("Many failed sign-ins", (ADDRESS,))
    assert clock.now() - incident.changed_at < timedelta(minutes=3)


async def test_reviews_of_a_page_are_requested_together(provider, simulator, put, clock):
    positions = {}
    cases = [put(str(number)) for number in range(60)]
    clock.advance(minutes=2)
    await read(provider, positions)
    clock.advance(hours=1)
    for case in cases:
        put(case.id, status=IncidentStatus.CLOSED, created_at=case.created_at)
    clock.advance(minutes=2)
    simulator.searches.clear()
    incidents, _ = await read(provider, positions, ["reviewed"])
    assert len(incidents) == 60
    assert len([search for search in simulator.searches if "event_id" in search]) == 1


async def test_review_of_missing_finding_is_rejected(simulator, put, clock):
    if isinstance(simulator, FindingsSimulator):
        pytest.skip("its ids tell where to look")
    settings = {"url": simulator.url, "token": TOKEN, "look_back": "1d"}
    async with open_provider(Splunk, clock=clock, **settings) as provider:
        positions = {}
        case = put(created_at=clock.now() - timedelta(days=40))
        await read(provider, positions)
        clock.advance(hours=5)
        put(status=IncidentStatus.CLOSED, created_at=case.created_at)
        clock.advance(minutes=2)
        incidents, [rejected] = await read(provider, positions)
        assert incidents == []
        assert "older than `look_back`" in rejected.reason


@pytest.mark.parametrize(
    "words",
    [
        "The search results might be incomplete: the search process on peer idx-2 ended early.",
        "Unable to distribute to peer named idx-2 because peer has status = Down.",
        "Results were truncated.",
    ],
)
async def test_incomplete_result_is_retried(provider, simulator, put, clock, words):
    positions = {}
    put()
    clock.advance(minutes=2)
    simulator.messages = [{"type": "WARN", "text": words}]
    with pytest.raises(TryLater, match="results are incomplete"):
        await read(provider, positions)
    simulator.messages = [{"type": "WARN", "text": "Could not load lookup=LOOKUP-made-up"}]
    [[_], _] = await read(provider, positions)


async def test_finalized_search_is_retried(provider, simulator, put, clock):
    put()
    simulator.finalized = True
    with pytest.raises(TryLater, match="finalized early"):
        await read(provider, {})


async def test_failed_search_has_its_reason(provider, simulator):
    simulator.failed = True
    simulator.messages = [{"type": "FATAL", "text": "The search specifies a macro 'notable'"}]
    with pytest.raises(Broken, match="specifies a macro 'notable'"):
        await read(provider, {})


async def test_search_is_polled_and_deleted(provider, simulator, put, clock):
    simulator.busy_polls = 6
    put()
    clock.advance(minutes=2)
    [[_], _] = await read(provider, {})
    assert simulator.jobs == {}


async def test_idle_read_takes_two_searches(provider, simulator, put, clock):
    put()
    clock.advance(minutes=2)
    positions = {}
    await read(provider, positions)
    clock.advance(minutes=30)
    simulator.requests.clear()
    assert await read(provider, positions) == ([], [])
    made = [
        request
        for request in simulator.requests
        if request.method == "POST" and request.path.endswith(JOBS)
    ]
    assert len(made) == 2


async def test_endless_search_is_canceled(provider, simulator):
    simulator.busy_polls, simulator.longest_search = 10**6, timedelta(days=1)
    with pytest.raises(Broken, match="did not finish within 0:01:30"):
        await read(provider, {})
    assert simulator.jobs == {}


async def test_search_waits_for_free_slots(provider, simulator):
    simulator.most_running = 0
    with pytest.raises(TryLater, match="concurrent historical searches") as caught:
        await read(provider, {})
    assert caught.value.throttled


async def test_concurrent_searches_are_limited(provider, simulator, put, clock):
    simulator.most_running = provider.settings.most_searches
    simulator.siem.log(
        LogEvent(id="1", occurred_at=clock.now() - timedelta(minutes=9), entities=(ADDRESS,))
    )
    found = await asyncio.gather(*(events(provider) for _ in range(6)))
    assert [len(item) for item in found] == [1] * 6


async def test_expired_job_is_restarted(provider, simulator, put, clock):
    simulator.most_per_page = 3
    for number in range(9):
        put(str(number))
    clock.advance(minutes=2)
    positions, found = {}, set()
    pages = provider.read("new", None, clock.now())
    async with aclosing(pages):
        async for page in pages:
            positions["new"] = page.next_position
            found |= {incident.external_id for incident in page.incidents}
            if found:
                break
    clock.advance(minutes=30)
    [incidents, _] = await read(provider, positions, ["new"])
    assert len(found | {incident.external_id for incident in incidents}) == 9


@pytest.mark.parametrize("member", ["resultCount", "dispatchState"])
async def test_incomplete_job_response_is_not_an_empty_result(provider, simulator, member):
    simulator.unsaid = {member}
    with pytest.raises(Broken, match=member):
        await read(provider, {})


async def test_too_many_results_are_incomplete(provider, simulator):
    simulator.claimed = 50_000
    with pytest.raises(Broken, match="50,000 results"):
        await read(provider, {})


async def test_check_reports_missing_objects(simulator, clock):
    settings = {"url": simulator.url, "token": TOKEN, "write_back": True}
    async with open_provider(Splunk, clock=clock, **settings) as provider:
        assert (await provider.check()).problems == ()
        simulator.capabilities, simulator.indexes = [], []
        health = await provider.check()
        assert health.problems == (
            "tocsin lacks the capability search; grant it to one of the user's roles",
            "tocsin lacks the capability edit_notable_events; grant it to one of the user's roles",
            "tocsin cannot search the index notable, or the index does not exist",
        )


@pytest.mark.parametrize("words", ["Nothing was found.", "Nothing was found. " * 1_000])
async def test_lost_response_writes_the_comment_once(provider, simulator, put, words):
    case = put()
    name = simulator.finding_id(case)
    where = "notes" if isinstance(simulator, FindingsSimulator) else "notable_update"
    simulator.fail(Fault.LOST, where=where)
    with pytest.raises(TryLater):
        await provider.comment(name, words, "key")
    await provider.comment(name, words, "key")
    [written] = simulator.siem.comments(case.id)
    assert written.endswith("[tocsin key]")


@pytest.mark.parametrize("status", list(IncidentStatus))
async def test_status_is_written_once(provider, simulator, put, status):
    other = IncidentStatus.CLOSED if status is IncidentStatus.NEW else IncidentStatus.NEW
    case = put(status=other)
    for _ in range(2):
        await provider.set_status(simulator.finding_id(case), status)
    assert simulator.siem.get(case.id).status is status
    writes = [
        request
        for request in simulator.requests
        if request.method == "POST" and JOBS not in request.path
    ]
    assert len(writes) == 1


async def test_status_of_missing_object_is_refused(provider):
    with pytest.raises(Refused, match="the finding 7 does not exist"):
        await provider.set_status("7", IncidentStatus.CLOSED)


async def test_failed_update_is_reported(provider, simulator, put):
    if isinstance(simulator, FindingsSimulator):
        pytest.skip("it is told by the status")
    case = put()
    simulator.refuses_updates = True
    with pytest.raises(Refused, match="Invalid status"):
        await provider.set_status(case.id, IncidentStatus.CLOSED)


async def test_events_are_searched_in_configured_indexes(simulator, clock):
    settings = {"url": simulator.url, "token": TOKEN, "event_indexes": ["dns", "proxy_*"]}
    async with open_provider(Splunk, clock=clock, **settings) as provider:
        assert await events(provider) == []
    [search] = simulator.searches
    assert search.startswith("search (index=dns OR index=proxy_*) NOT index=notable (")


async def test_event_search_ignores_case(provider, simulator, clock):
    logged = Entity(EntityKind.USER, "Administrator")
    at = clock.now() - timedelta(minutes=1)
    simulator.siem.log(LogEvent(id="1", occurred_at=at, entities=(logged,)))
    [event] = await events(provider, Entity(EntityKind.USER, "administrator"))
    assert event.entities == (logged,)


async def test_unsearchable_entity_sends_no_request(provider, simulator):
    assert await events(provider, Entity(EntityKind.CLOUD_RESOURCE, "i-0123")) == []
    assert await events(provider, Entity(EntityKind.USER, "")) == []
    assert simulator.searches == []


@pytest.mark.parametrize("name", ["main) OR (index=_audit", "a b", "", "a`b", 'a"'])
def test_index_names_are_validated(name):
    with pytest.raises(ValidationError, match="event_indexes"):
        make_settings(Splunk, url="https://splunk.example.com", token="x", event_indexes=[name])


async def test_two_instances_run_concurrently(clock):
    async with (
        SplunkSimulator(Siem(clock)) as one,
        FindingsSimulator(Siem(clock)) as other,
        open_provider(Splunk, clock=clock, name="one", url=one.url, token=TOKEN) as first,
        open_provider(Splunk, clock=clock, name="other", url=other.url, token=TOKEN) as second,
    ):
        now = clock.now()
        for simulator, title in ((one, "of one"), (other, "of the other")):
            case = Case(
                id="7", number=7, title=title, severity=Severity.LOW, created_at=now, changed_at=now
            )
            simulator.siem.put(case)
        clock.advance(minutes=2)
        positions = [{}, {}]
        found = [
            await read(item, place) for item, place in zip((first, second), positions, strict=True)
        ]
        assert [[incident.title for incident in incidents] for incidents, _ in found] == [
            ["of one"],
            ["of the other"],
        ]
        await second.comment(other.finding_id(case), "Seen.", "key")
        assert (one.siem.comments("7"), len(other.siem.comments("7"))) == ([], 1)
