"""The Elastic provider against the simulators, with a manual clock."""

from __future__ import annotations

from contextlib import aclosing
from datetime import timedelta

import orjson
import pytest
from aiohttp import web
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
from tocsin.registry import PluginsFile, installed_plugins
from tocsin.registry.inventory import describe_plugin
from tocsin.testing import Case, Fault, LogEvent, Siem, make_settings, open_provider
from tocsin_connectors.siem.elastic import Elastic, tocsin_providers

from .simulator import API_KEY, CasesSimulator, ElasticSimulator

ADDRESS = Entity(EntityKind.IP, "203.0.113.7")


@pytest.fixture
async def alerts(clock):
    async with ElasticSimulator(Siem(clock)) as simulator:
        yield simulator


@pytest.fixture
async def cases(clock):
    async with CasesSimulator(Siem(clock)) as simulator:
        yield simulator


@pytest.fixture
async def of_alerts(alerts, clock):
    async with open_elastic(alerts, clock, incidents=["alerts"]) as provider:
        yield provider


@pytest.fixture
async def of_cases(cases, clock):
    async with open_elastic(cases, clock, incidents=["cases"]) as provider:
        yield provider


def open_elastic(simulator, clock, **settings):
    given = {"url": simulator.url, "kibana_url": simulator.url, "api_key": API_KEY}
    return open_provider(Elastic, clock=clock, **{**given, **settings})


def put(simulator, name="7", **parts):
    now = simulator.siem.clock.now()
    given = {"title": "Password Guessing", "severity": Severity.HIGH}
    return simulator.siem.put(
        Case(**{"id": name, "number": 7, "created_at": now, "changed_at": now, **given, **parts})
    )


async def read(provider, positions=None, streams=None):
    """Read what is new, as the core does, and return the incidents."""
    positions, incidents = {} if positions is None else positions, []
    for stream in streams or provider.streams():
        pages = provider.read(stream, positions.get(stream), provider.tools.clock.now())
        async with aclosing(pages):
            async for page in pages:
                positions[stream] = orjson.loads(orjson.dumps(page.next_position))
                incidents += page.incidents
    return incidents


def test_plugin_hook_returns_the_provider():
    assert tocsin_providers() is Elastic
    assert Elastic.capabilities() >= {
        Capability.REFRESH,
        Capability.BACKFILL,
        Capability.EVENTS,
        Capability.COMMENT,
    }


async def test_more_alerts_of_one_time_than_a_page_are_read(of_alerts, alerts, clock):
    alerts.most_per_page = 3
    for number in range(7):
        put(alerts, str(number))
    clock.advance(minutes=2)
    assert len(await read(of_alerts)) == 7


async def test_token_of_another_version_restarts_the_window(of_alerts, alerts, clock):
    put(alerts)
    clock.advance(minutes=2)
    now, hour = clock.now(), timedelta(hours=1)
    window = [(now - hour).isoformat(), (now - timedelta(seconds=30)).isoformat()]
    position = {"version": 1, "watermark": window[0], "window": window, "floor": None, "seen": {}}
    point = {"token": ["pit-1", ["2026-11-20T09:00:00.000Z", 7]], "pages": 1}
    assert len(await read(of_alerts, {"alerts": {**position, **point}})) == 1


@pytest.mark.parametrize(
    ("quirk", "reason"),
    [
        ({"shards": {"total": 3, "successful": 2, "failed": 1}}, "missing shards"),
        ({"timed_out": True}, "the search timed out"),
        ({"skipped_clusters": 1}, "1 clusters were skipped"),
    ],
)
async def test_partial_response_is_retried(of_alerts, alerts, clock, quirk, reason):
    put(alerts)
    clock.advance(minutes=2)
    [(name, value)] = quirk.items()
    whole = getattr(alerts, name)
    setattr(alerts, name, value)
    with pytest.raises(TryLater, match=reason):
        await read(of_alerts)
    setattr(alerts, name, whole)
    assert len(await read(of_alerts)) == 1


async def test_partial_results_are_disabled(of_alerts, alerts):
    await read(of_alerts)
    searches = [request for request in alerts.requests if request.path.endswith("/_search")]
    assert {search.query["allow_partial_search_results"] for search in searches} == {"false"}


async def test_alert_with_changed_status_is_read_again(of_alerts, alerts, clock):
    positions = {}
    put(alerts)
    clock.advance(minutes=2)
    await read(of_alerts, positions)
    clock.advance(hours=30)
    await of_alerts.set_status("7", IncidentStatus.CLOSED)
    clock.advance(minutes=2)
    [incident] = await read(of_alerts, positions)
    assert (incident.status, incident.raw_status) == (IncidentStatus.CLOSED, "closed")


async def test_case_is_read_when_created_and_changed(of_cases, cases, clock):
    positions = {}
    user = Entity(EntityKind.USER, "ann")
    case = put(cases, entities=(ADDRESS, user))
    clock.advance(minutes=2)
    [made] = await read(of_cases, positions)
    assert (set(made.entities), len(made.alerts)) == ({ADDRESS, user}, 1)
    clock.advance(days=3)
    put(cases, status=IncidentStatus.CLOSED, created_at=case.created_at)
    clock.advance(minutes=2)
    [changed] = await read(of_cases, positions, ["changed-cases"])
    assert changed.status is IncidentStatus.CLOSED


async def test_idle_read_takes_three_requests(cases, clock):
    put(cases)
    clock.advance(minutes=2)
    positions = {}
    async with open_elastic(cases, clock) as provider:
        assert await read(provider, positions)
        clock.advance(minutes=30)
        cases.requests.clear()
        assert await read(provider, positions) == []
    assert len(cases.requests) == 3


async def test_old_kibana_sort_order_is_detected(of_cases, cases, clock):
    old = [put(cases, str(number)) for number in range(3)]
    for case in reversed(old):
        clock.advance(minutes=1)
        put(cases, case.id, created_at=case.created_at, status=IncidentStatus.ACTIVE)
    clock.advance(minutes=2)
    cases.sorts_by_change = False
    with pytest.raises(Broken, match="does not sort by `updatedAt`"):
        await read(of_cases)


async def test_deleted_case_hides_no_other(of_cases, cases, clock):
    cases.most_per_page = 3
    for number in range(9):
        put(cases, str(number))
        clock.advance(seconds=1)
    clock.advance(minutes=2)
    positions, seen = {}, set()
    pages = of_cases.read("new-cases", None, clock.now())
    async with aclosing(pages):
        async for page in pages:
            positions["new-cases"] = page.next_position
            seen |= {incident.external_id for incident in page.incidents}
            if seen:
                break
    del cases.siem._versions["0"]
    seen |= {item.external_id for item in await read(of_cases, positions)}
    assert seen == {f"case:{number}" for number in range(9)}


async def test_deletions_during_paging_are_detected(cases, clock):
    cases.most_per_page = 3
    for number in range(9):
        put(cases, str(number))
    clock.advance(minutes=2)
    asked = []

    def delete():
        asked.append(None)
        if len(asked) == 2:
            del cases.siem._versions["0"]

    cases.before_each = delete
    async with open_elastic(cases, clock, incidents=["cases"], first_fetch="5m") as provider:
        with pytest.raises(Broken, match="were deleted while Tocsin listed"):
            await read(provider)
        assert len(await read(provider)) == 8


async def test_empty_page_of_remaining_cases_is_broken(of_cases, cases, clock):
    put(cases)
    clock.advance(minutes=2)
    cases.hides = True
    with pytest.raises(Broken, match="none of the 1 remaining cases"):
        await read(of_cases)


@pytest.mark.parametrize("status", list(IncidentStatus))
async def test_status_of_case_is_written_once(of_cases, cases, clock, status):
    other = IncidentStatus.CLOSED if status is IncidentStatus.NEW else IncidentStatus.NEW
    put(cases, status=other)
    for _ in range(2):
        await of_cases.set_status("case:7", status)
    assert cases.siem.get("7").status is status
    assert len([request for request in cases.requests if request.method == "PATCH"]) == 1


async def test_concurrently_changed_case_is_read_again(of_cases, cases, clock):
    put(cases)
    changes = [lambda: put(cases, description="More is known.")]
    cases.before_patch = lambda: changes.pop()() if changes else None
    await of_cases.set_status("case:7", IncidentStatus.CLOSED)
    case = cases.siem.get("7")
    assert (case.status, case.description) == (IncidentStatus.CLOSED, "More is known.")


async def test_constantly_changing_case_is_tried_later(of_cases, cases, clock):
    put(cases)
    cases.before_patch = lambda: put(cases, description=str(clock.advance(seconds=1)))
    with pytest.raises(TryLater, match="being changed concurrently"):
        await of_cases.set_status("case:7", IncidentStatus.CLOSED)


async def test_status_of_missing_object_is_refused(of_cases, of_alerts):
    with pytest.raises(Refused):
        await of_cases.set_status("case:7", IncidentStatus.CLOSED)
    with pytest.raises(Refused, match="the alert 7 does not exist"):
        await of_alerts.set_status("7", IncidentStatus.CLOSED)


async def test_comment_is_fenced_as_code(of_cases, cases, clock):
    put(cases)
    words = "````\n[a link](https://example.com)"
    await of_cases.comment("case:7", words, "key")
    [written] = cases.siem.comments("7")
    assert written == f"`````\n{words}\n`````\n\n[tocsin key]"


async def test_comment_is_found_after_a_hundred_others(of_cases, cases):
    put(cases)
    await of_cases.comment("case:7", "Nothing was found.", "key")
    for number in range(250):
        cases.siem.comment("7", f"comment {number}")
    await of_cases.comment("case:7", "Nothing was found.", "key")
    assert len(cases.siem.comments("7")) == 251


async def test_lost_response_writes_the_comment_once(of_cases, cases):
    await expect_one_comment(of_cases, cases, "case:7", "comments")


async def test_lost_response_writes_the_note_once(of_alerts, alerts):
    await expect_one_comment(of_alerts, alerts, "7", "note")


async def expect_one_comment(provider, simulator, name, where):
    put(simulator)
    simulator.fail(Fault.LOST, where=where)
    with pytest.raises(TryLater):
        await provider.comment(name, "Nothing was found. " * 1_000, "key")
    await provider.comment(name, "Nothing was found. " * 1_000, "key")
    assert len(simulator.siem.comments("7")) == 1


async def test_check_reports_missing_objects(cases, clock):
    async with open_elastic(cases, clock) as provider:
        assert (await provider.check()).problems == ()
        cases.lacking = ["logs-*", ".alerts-security.alerts-default"]
        cases.fail(Fault.FORBIDDEN, where="_find")
        problems = (await provider.check()).problems
    assert problems[:2] == (
        "tocsin lacks the privilege read on logs-*",
        "tocsin lacks the privilege read on .alerts-security.alerts-default",
    )
    assert problems[2].startswith("tocsin cannot read cases in the space default")


async def test_check_reports_missing_write_privileges(cases, clock):
    put(cases)
    async with open_elastic(cases, clock, write_back=True) as provider:
        assert (await provider.check()).problems == ()
        cases.fail(Fault.FORBIDDEN, where="/comments")
        cases.fail(Fault.FORBIDDEN, where="/api/note")
        problems = (await provider.check()).problems
    assert problems == (
        "tocsin cannot write comments to cases in the space default",
        "tocsin cannot write notes to alerts in the space default",
    )
    assert cases.siem.comments("7") == []


@pytest.mark.parametrize(
    "options", [{"write_back": True, "write_back_status": "Active"}, {"close_from_tickets": True}]
)
async def test_setting_a_status_has_its_own_privilege(cases, clock, options):
    cases.lacking = [".alerts-security.alerts-default"]
    async with open_elastic(cases, clock, **options) as provider:
        problems = (await provider.check()).problems
    where = "on .alerts-security.alerts-default"
    words = ("read", "write", "maintenance")
    assert problems == tuple(f"tocsin lacks the privilege {word} {where}" for word in words)


async def test_space_is_in_every_url(clock, aiohttp_server):
    asked = []

    async def answer(request):
        asked.append(request.path)
        return web.json_response({"cases": [], "page": 1, "per_page": 100, "total": 0})

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    url = str((await aiohttp_server(app)).make_url("")).rstrip("/")
    settings = {"url": url, "kibana_url": f"{url}/base", "api_key": API_KEY, "space": "soc"}
    async with open_provider(Elastic, clock=clock, incidents=["cases"], **settings) as provider:
        await read(provider)
    assert set(asked) == {"/base/s/soc/api/cases/_find"}
    assert provider.settings.alerts_index == ".alerts-security.alerts-soc"


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"event_indexes": ["logs/_all"]}, "event_indexes"),
        ({"event_indexes": ["a,b"]}, "event_indexes"),
        ({"space": "a/../b"}, "space"),
        ({"incidents": []}, "incidents"),
        ({"incidents": ["rules"]}, "incidents"),
    ],
)
def test_settings_are_validated(wrong, named):
    given = {"url": "https://es.example.com", "kibana_url": "https://kb.example.com"}
    with pytest.raises(ValidationError, match=named):
        make_settings(Elastic, **{**given, "api_key": "x", **wrong})


async def test_event_search_returns_the_latest_across_pages(of_alerts, alerts, clock):
    now = clock.now()
    for number in range(5):
        at = now - timedelta(minutes=number + 1)
        alerts.siem.log(LogEvent(id=str(number), occurred_at=at, entities=(ADDRESS,)))
    alerts.most_per_page = 2
    window = Window(now - timedelta(hours=1), now)
    found = [event.external_id async for event in of_alerts.events(ADDRESS, window, 3)]
    assert [item.rpartition("/")[2] for item in found] == ["0", "1", "2"]


async def test_event_search_ignores_case(of_alerts, alerts, clock):
    at, logged = clock.now(), Entity(EntityKind.USER, "Administrator")
    alerts.siem.log(LogEvent(id="1", occurred_at=at, entities=(logged,)))
    window = Window(at - timedelta(hours=1), at + timedelta(hours=1))
    asked = Entity(EntityKind.USER, "administrator")
    assert [event.external_id async for event in of_alerts.events(asked, window, 9)] == [
        "logs-made.up-default/1"
    ]


async def test_two_instances_run_concurrently(alerts, cases, clock):
    put(alerts, title="of one")
    put(cases, title="of the other")
    clock.advance(minutes=2)
    async with (
        open_elastic(alerts, clock, name="one", incidents=["alerts"]) as one,
        open_elastic(cases, clock, name="other", incidents=["cases"]) as other,
    ):
        found = [[incident.title for incident in await read(provider)] for provider in (one, other)]
        assert found == [["of one"], ["of the other"]]
        await one.comment("7", "Seen.", "key")
    assert (len(alerts.siem.comments("7")), cases.siem.comments("7")) == (1, [])


async def test_streams_are_known_without_settings():
    plugins = [plugin for plugin in installed_plugins() if plugin.name == "elastic"]
    [kind] = (await describe_plugin("elastic", PluginsFile(), plugins)).kinds
    assert kind.streams == ("alerts", "new-cases", "changed-cases")
