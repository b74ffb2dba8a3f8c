"""The Sentinel provider against the simulator, with a manual clock."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, aclosing
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest
from pydantic import ValidationError
from tests.connectors.defender.simulator import SETTINGS as OF_DEFENDER
from tests.connectors.defender.simulator import DefenderSimulator
from tests.connectors.soar.sentinel_incidents.suite import Suite as ChannelSuite

from tocsin import (
    Broken,
    Capability,
    CredentialsRefused,
    Entity,
    EntityKind,
    Incident,
    IncidentStatus,
    Refused,
    Severity,
    TryLater,
    Window,
)
from tocsin.testing import Case, Fault, LogEvent, Siem, make_settings, open_provider
from tocsin_connectors.siem.defender import Defender
from tocsin_connectors.siem.sentinel import Sentinel, tocsin_providers
from tocsin_connectors.siem.sentinel.client import _parse_next_link
from tocsin_connectors.siem.sentinel.mapping import is_own

from .simulator import LOGS, READER, SETTINGS, SentinelSimulator

ATTACKER = Entity(EntityKind.IP, "203.0.113.7")
WEB = Entity(EntityKind.HOST, "web01")
KEY = "tocsin:ses_01:1:7"


@pytest.fixture
async def simulator(clock):
    async with SentinelSimulator(Siem(clock)) as simulator:
        yield simulator


@pytest.fixture
def opened(simulator, clock):
    return partial(
        open_provider,
        Sentinel,
        clock=clock,
        url=simulator.url,
        authority=simulator.url,
        logs_url=simulator.url,
        **SETTINGS,
    )


@pytest.fixture
async def provider(opened):
    async with opened() as provider:
        yield provider


@pytest.fixture
def put(simulator, clock):
    def put(name="i-1", **parts):
        now = clock.now()
        given = {"title": "Password spray", "severity": Severity.HIGH, "entities": (ATTACKER, WEB)}
        case = Case(id=name, number=1, created_at=now, changed_at=now, **given | parts)
        return simulator.siem.put(case)

    return put


async def read(provider, position=None) -> tuple[dict, list[Incident]]:
    found: list[Incident] = []
    async with aclosing(provider.read("changed", position, provider.tools.clock.now())) as pages:
        async for page in pages:
            position, found = page.next_position, [*found, *page.incidents]
    return position, found


def test_plugin_hook_returns_the_provider():
    assert tocsin_providers() is Sentinel
    assert Sentinel.capabilities() == set(Capability) - {Capability.PUSH}


async def test_incident_has_alerts_and_entities(provider, put, clock):
    put()
    clock.advance(minutes=2)
    _, [incident] = await read(provider)
    assert set(incident.entities) == {ATTACKER, WEB}
    assert {alert.title for alert in incident.alerts} == {"203.0.113.7 was seen", "web01 was seen"}


async def test_late_entities_are_read_again(provider, put, clock):
    put(entities_at=clock.now() + timedelta(minutes=20))
    clock.advance(minutes=2)
    _, [incident] = await read(provider)
    assert incident.entities == ()
    clock.advance(minutes=20)
    assert set((await provider.incident("i-1")).entities) == {ATTACKER, WEB}


async def test_failed_details_are_requested_again(provider, simulator, put, clock):
    put()
    clock.advance(minutes=2)
    simulator.fail(Fault.ERROR, where="/entities")
    position, _ = await read_all_that_can_be(provider)
    _, [incident] = await read(provider, position)
    assert set(incident.entities) == {ATTACKER, WEB}


async def test_intermittent_failures_of_details_are_retried(provider, simulator, put, clock):
    position = None
    for number in range(4):
        put(f"i-{number}")
        clock.advance(minutes=2)
        simulator.fail(Fault.ERROR, where="/entities")
        position, _ = await read_all_that_can_be(provider, position)
        position, [incident] = await read(provider, position)
        assert set(incident.entities) == {ATTACKER, WEB}


async def test_permanent_failures_of_details_do_not_block(provider, simulator, put, clock):
    for number in range(5):
        put(f"i-{number}")
    clock.advance(minutes=2)
    simulator.fail(Fault.UNEXPECTED, where="/entities", times=50)
    position = None
    for _ in range(2):
        position, found = await read_all_that_can_be(provider, position)
        assert found == []
    _, found = await read(provider, position)
    assert [incident.entities for incident in found] == [()] * 5


async def read_all_that_can_be(provider, position=None) -> tuple[dict, list[Incident]]:
    """Return what was read up to a `TryLater`, which has to come."""
    found: list[Incident] = []
    async with aclosing(provider.read("changed", position, provider.tools.clock.now())) as pages:
        try:
            async for page in pages:
                position, found = page.next_position, [*found, *page.incidents]
        except TryLater:
            return position, found
    raise AssertionError("it was read to its end")


def test_next_link_can_have_a_port():
    def following(link: object) -> str | None:
        return _parse_next_link(type("Answer", (), {"json": {"value": [], "nextLink": link}}))

    link = "https://management.azure.com:443/subscriptions/s?a=b%20c&$skipToken=x%3D"
    assert following(link) == "/subscriptions/s?a=b%20c&$skipToken=x%3D"
    assert following(None) is following("") is None
    with pytest.raises(Broken):
        following(7)


async def test_changes_during_paging_hide_no_other(provider, simulator, put, clock):
    cases = [(clock.advance(seconds=2), put(f"i-{number}"))[1] for number in range(8)]
    clock.advance(minutes=2)
    simulator.links_count, simulator.most_per_page = True, 2
    changes = iter(cases[:2])

    def change():
        if simulator.requests and simulator.requests[-1].path.endswith("i-1/entities"):
            for case in changes:
                simulator.siem.put(replace(case, changed_at=clock.now()))

    simulator.before_each = change
    position, found = await read(provider)
    clock.advance(hours=1)
    _, changed = await read(provider, position)
    assert {incident.external_id for incident in found} == {case.id for case in cases}
    assert {item.external_id for item in changed} == {"i-0", "i-1"}


async def test_more_incidents_of_one_second_than_a_page_are_read(provider, simulator, put, clock):
    for number in range(7):
        put(f"i-{number}")
    clock.advance(minutes=2)
    simulator.most_per_page = 2
    assert len((await read(provider))[1]) == 7


OF_TOCSIN = "2b1ae9ee-8b1e-5f0c-9d9c-3f1a5f6f7a10"  # of version 5, as the channel gives them


async def test_own_incidents_are_skipped(opened, simulator, put, clock):
    put(OF_TOCSIN)
    simulator.labels = ("tocsin", "incident-alert")
    clock.advance(minutes=2)
    async with opened() as provider:
        assert (await read(provider))[1] == []
        assert (await provider.incident(OF_TOCSIN)).external_id == OF_TOCSIN
    async with opened(read_own=True) as provider:
        assert len((await read(provider))[1]) == 1


@pytest.mark.parametrize(
    ("name", "label", "is_tocsins"),
    [
        (OF_TOCSIN, "Tocsin", True),
        (OF_TOCSIN, "seen by tocsin", False),
        (OF_TOCSIN, None, False),
        ("73e01a99-5cd7-4139-a149-9f2736ff2ab5", "tocsin", False),  # which somebody has set
        ("i-1", "tocsin", False),
        (None, "tocsin", False),
    ],
)
def test_label_alone_does_not_mark_own_incidents(name, label, is_tocsins):
    labels = [{"labelName": "vip"}, {"labelName": label}, "tocsin"]
    assert is_own({"name": name, "properties": {"labels": labels}}) is is_tocsins


async def test_incidents_of_the_channel_are_recognized():
    async with ChannelSuite().harness() as harness:
        await harness.bring(harness.alert())
        [(name, made)] = harness.simulator.incidents.items()
    assert is_own({"name": name, "properties": made["properties"]})


# what investigations ask


@pytest.fixture
def log(simulator, clock):
    def log(minutes: int, entity: Entity = ATTACKER):
        at = clock.now() - timedelta(minutes=minutes)
        simulator.siem.log(
            LogEvent(
                id=str(minutes), occurred_at=at, entities=(entity, WEB), text="ConnectionSuccess"
            )
        )

    return log


async def events(provider, entity=ATTACKER, limit=9):
    now = provider.tools.clock.now()
    async with aclosing(
        provider.events(entity, Window(now - timedelta(hours=1), now), limit)
    ) as found:
        return [event async for event in found]


async def test_logs_are_queried_by_workspace_id(provider, simulator, log):
    log(10)
    for _ in range(2):
        [event] = await events(provider)
    assert event.summary == "network: ConnectionSuccess, curl.exe, 203.0.113.7, web01"
    paths = [asked.path for asked in simulator.requests]
    assert paths.count(f"/v1/workspaces/{LOGS}/query") == 2
    assert sum(path.endswith("/workspaces/soc-logs") for path in paths) == 1


async def test_configured_id_is_not_looked_up(opened, simulator, log):
    log(10)
    async with opened(workspace_id=LOGS) as provider:
        assert len(await events(provider)) == 1
    assert not any(asked.path.endswith("/workspaces/soc-logs") for asked in simulator.requests)


async def test_partial_results_are_returned_and_reported(provider, simulator, log):
    log(10)
    simulator.partial_error = {"code": "PartialError", "message": "the result is too large"}
    now = provider.tools.clock.now()
    found = provider.events(ATTACKER, Window(now - timedelta(hours=1), now), 9)
    assert (await anext(found)).entities
    with pytest.raises(TryLater, match="the result is too large"):
        await anext(found)


async def test_custom_tables_are_searched(opened, simulator):
    async with opened(tables={"Firewall_CL": {"ip": ["src_s"]}}) as provider:
        await events(provider)
    assert "Firewall_CL" in {leg.table for leg in simulator.queries[-1].legs}


@pytest.mark.parametrize(
    "tables",
    [
        {"Firewall_CL | take 1": {"ip": ["src_s"]}},
        {"Firewall_CL": {"ip": ['src_s") or true']}},
        {"Firewall_CL": {"address": ["src_s"]}},
        {"": {"ip": ["src_s"]}},
    ],
)
def test_invalid_table_and_column_names_are_refused(tables):
    with pytest.raises(ValidationError, match="tables"):
        make_settings(Sentinel, tables=tables, **SETTINGS)


# what the app may do


@pytest.mark.parametrize(
    ("where", "missing"),
    [
        ("/incidents", "Microsoft.SecurityInsights/incidents/read"),
        ("/entities", "Microsoft.SecurityInsights/incidents/read"),
        ("/query", "Microsoft.OperationalInsights/workspaces/query/read"),
    ],
)
async def test_check_reports_missing_read_permissions(provider, simulator, put, where, missing):
    put()
    simulator.fail(Fault.FORBIDDEN, where=where)
    health = await provider.check()
    assert health.problems == (f"the app lacks the permission {missing}",)


async def test_check_reports_missing_write_permissions(opened, simulator):
    simulator.roles = [READER]
    async with opened() as provider:
        assert (await provider.check()).problems == ()
    async with opened(write_back=True) as provider:
        [problem] = (await provider.check()).problems
        assert problem.endswith("Microsoft.SecurityInsights/incidents/comments/write")
    async with opened(close_from_tickets=True) as provider:
        [problem] = (await provider.check()).problems
        assert problem.endswith("Microsoft.SecurityInsights/incidents/write")
    async with opened(write_back=True, write_back_status="Active") as provider:
        assert (await provider.check()).problems == (
            "the app lacks the permission Microsoft.SecurityInsights/incidents/comments/write",
            "the app lacks the permission Microsoft.SecurityInsights/incidents/write",
        )
        simulator.fail(Fault.FORBIDDEN, where="permissions")
        [problem] = (await provider.check()).problems
        assert problem.endswith("Microsoft.Authorization/permissions/read")


async def test_check_reports_wrong_credentials_as_such(opened):
    async with opened(client_secret="another") as provider:
        with pytest.raises(CredentialsRefused, match="AADSTS7000215"):
            await provider.check()


# what is written


async def test_existing_comment_is_not_written_again(provider, simulator, put):
    put()
    for _ in range(2):  # the second conflicts with the first
        await provider.comment("i-1", "Nothing was found.", KEY)
    assert simulator.siem.comments("i-1") == ["Nothing was found."]


async def test_conflicting_comment_is_tried_later(provider, put, monkeypatch):
    put()

    async def conflict(*_):
        return False

    monkeypatch.setattr(provider._workspace, "write_comment", conflict)
    with pytest.raises(TryLater):
        await provider.comment("i-1", "Nothing was found.", KEY)


@pytest.mark.parametrize("status", IncidentStatus)
async def test_status_change_keeps_other_properties(provider, simulator, put, status):
    put(status=IncidentStatus.NEW, description="Seen on several hosts.")
    await provider.set_status("i-1", status)
    found = await provider.incident("i-1")
    assert (found.status, found.description) == (status, "Seen on several hosts.")
    writes = [asked for asked in simulator.requests if asked.method == "PUT"]
    assert len(writes) == (status is not IncidentStatus.NEW)


async def test_status_change_is_retried_after_a_conflict(provider, simulator, put, clock):
    case = put()
    changes = iter([replace(case, title="New title")])

    def change():
        for changed in changes:
            clock.advance(seconds=1)
            simulator.siem.put(replace(changed, changed_at=clock.now()))

    simulator.before_put = change
    await provider.set_status("i-1", IncidentStatus.CLOSED)
    found = await provider.incident("i-1")
    assert (found.status, found.title) == (IncidentStatus.CLOSED, "New title")


async def test_constant_conflicts_are_tried_later(provider, simulator, put, clock):
    case = put()

    def change():
        clock.advance(seconds=1)
        simulator.siem.put(replace(case, changed_at=clock.now()))

    simulator.before_put = change
    with pytest.raises(TryLater):
        await provider.set_status("i-1", IncidentStatus.ACTIVE)


async def test_status_of_missing_incident_is_refused(provider):
    with pytest.raises(Refused):
        await provider.set_status("i-9", IncidentStatus.ACTIVE)


# side by side


async def test_two_workspaces_and_a_tenant_are_read_concurrently(clock):
    siems = [Siem(clock) for _ in range(3)]
    for place, siem in enumerate(siems):
        at = clock.now()
        case = Case(
            id="i-1",
            number=1,
            title=f"of place {place}",
            severity=Severity.HIGH,
            created_at=at,
            changed_at=at,
            entities=(Entity(EntityKind.IP, f"203.0.113.{place}"),),
        )
        siem.put(case)
    clock.advance(minutes=2)
    async with AsyncExitStack() as stack:
        providers = []
        for kind, simulate, settings, siem in (
            (Sentinel, SentinelSimulator, SETTINGS, siems[0]),
            (Sentinel, SentinelSimulator, SETTINGS, siems[1]),
            (Defender, DefenderSimulator, OF_DEFENDER, siems[2]),
        ):
            url = (await stack.enter_async_context(simulate(siem))).url
            logs = {"logs_url": url} if kind is Sentinel else {}
            opening = open_provider(
                kind, clock=clock, url=url, authority=url, name=f"at-{url}", **logs, **settings
            )
            providers.append(await stack.enter_async_context(opening))
        read_at_once = await asyncio.gather(*(read(provider) for provider in providers))
    found = [incident for _, incidents in read_at_once for incident in incidents]
    assert [item.title for item in found] == ["of place 0", "of place 1", "of place 2"]
    assert [value.entities[0].value for value in found] == [
        f"203.0.113.{place}" for place in range(3)
    ]
