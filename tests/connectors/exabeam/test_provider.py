"""Mapping of Exabeam's cases and alerts, and the requests that read and change them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.connectors.exabeam.simulator import SETTINGS, ExabeamSimulator
from tests.connectors.stored_cases import list_records, put_case

from tocsin import (
    Alert,
    Broken,
    Entity,
    EntityKind,
    Incident,
    IncidentStatus,
    Misconfigured,
    Refused,
    Severity,
    Window,
)
from tocsin.testing import LogEvent, ManualClock, Siem, open_provider
from tocsin_connectors.siem.exabeam import Exabeam, tocsin_providers
from tocsin_connectors.siem.exabeam.mapping import build_incident

CASE = "6f0e7b1c-0000-4000-8000-000000000001"
SOURCE, SERVER = Entity(EntityKind.IP, "203.0.113.9"), Entity(EntityKind.HOST, "files-1")
TARGET = Entity(EntityKind.IP, "192.0.2.80")
USER, WORKSTATION = Entity(EntityKind.USER, "ann"), Entity(EntityKind.HOST, "ws-17")
PAGE = "https://acme.exabeam.cloud/threat-center/cases"


def record(**changes: Any) -> dict[str, Any]:
    """A case of two rules, as the search returns it."""
    return {
        "caseId": CASE,
        "caseNumber": 221,
        "alertId": "alert-1",
        "alertName": "Suspicious PowerShell",
        "alertDescriptionRt": "<p>Encoded &amp; hidden command.</p>See evil.example",
        "stage": "Containment",
        "priority": "HIGH",
        "riskScore": 87,
        "queue": "Tier 1",
        "assignee": "ben@example.com",
        "caseCreationTimestamp": 1795178096789012,
        "lastModifiedTimestamp": 1795179600000000,
        "approxLogTime": 1795177800000000,
        "users": ["ann"],
        "endpoints": ["ws-17"],
        "srcIps": ["203.0.113.9"],
        "srcEndpoints": [{"ip": "203.0.113.9"}],
        "destIps": ["192.0.2.80"],
        "destHosts": ["files-1"],
        "groupedbyKey": "src_ip",
        "groupedbyValue": "198.51.100.66",
        "vendors": ["Microsoft"],
        "mitres": [
            {
                "tactic": "Execution",
                "tacticKey": "TA0002",
                "technique": "PowerShell",
                "techniqueKey": "T1059.001",
            },
            {"tactic": "Credential Access"},
        ],
        "rules": [
            {
                "ruleId": "fact-1",
                "ruleName": "Encoded command",
                "ruleReason": "An <b>encoded</b> command",
                "ruleSeverity": "Critical",
                "approxLogTime": 1795177800000000,
            }
        ],
        "tags": ["malware"],
    } | changes


def test_plugin_hook_returns_the_provider():
    assert tocsin_providers() is Exabeam


def test_case_becomes_incident():
    occurred_at = datetime(2026, 11, 20, 12, 30, tzinfo=UTC)
    lines = ("Encoded & hidden command.", "See evil.example")
    assert build_incident(record(), "cases", PAGE) == Incident(
        external_id=CASE,
        external_number="221",
        title="Suspicious PowerShell",
        description="\n".join([*lines, "Encoded command: An encoded command", "Tags: malware"]),
        severity=Severity.HIGH,
        raw_severity="HIGH",
        status=IncidentStatus.ACTIVE,
        raw_status="Containment",
        occurred_at=occurred_at,
        changed_at=datetime(2026, 11, 20, 13, tzinfo=UTC),
        source_url=f"{PAGE}/{CASE}",
        techniques=("T1059.001",),
        tactics=("TA0002", "TA0006"),
        entities=(USER, WORKSTATION, SOURCE, TARGET, SERVER),
        sources=(SOURCE,),
        targets=(TARGET, SERVER),
        alerts=(
            Alert(
                external_id="fact-1",
                title="Encoded command",
                severity=Severity.CRITICAL,
                occurred_at=occurred_at,
                rule="Encoded command",
            ),
        ),
    )


def test_alert_becomes_incident():
    found = build_incident(
        {
            "alertId": "alert-1",
            "alertName": "Abnormal access",
            "priority": "LOW",
            "alertCreationTimestamp": "2026-11-20T12:34:56Z",
            "users": ["ann"],
        },
        "alerts",
        None,
    )
    created_at = datetime(2026, 11, 20, 12, 34, 56, tzinfo=UTC)
    assert (found.external_id, found.status) == ("alert-1", IncidentStatus.NEW)
    assert (found.occurred_at, found.changed_at) == (created_at, created_at)
    assert (found.severity, found.entities) == (Severity.LOW, (USER,))
    assert [alert.rule for alert in found.alerts] == [None]


@pytest.mark.parametrize(
    ("stage", "status"),
    [
        ("NEW", IncidentStatus.NEW),
        (None, IncidentStatus.NEW),
        ("Investigation", IncidentStatus.ACTIVE),
        ("Waiting for legal", IncidentStatus.ACTIVE),
        ("Closed", IncidentStatus.CLOSED),
    ],
)
def test_stages(stage, status):
    assert build_incident(record(stage=stage), "cases", None).status is status


@pytest.mark.parametrize(
    "created", [1795178096789012, 1795178096789, 1795178096, "2026-11-20T12:34:56.789Z"]
)
def test_times_may_have_any_unit(created):
    """The documentation says ISO 8601, and answers have microseconds."""
    found = build_incident(
        record(caseCreationTimestamp=created, lastModifiedTimestamp=None), "cases", None
    )
    assert found.changed_at.replace(microsecond=0) == datetime(2026, 11, 20, 12, 34, 56, tzinfo=UTC)


@pytest.mark.parametrize("created", [None, "yesterday", -7, 10**30, True])
def test_case_without_a_time_is_rejected(created):
    with pytest.raises(ValueError, match=r"time|caseCreationTimestamp"):
        build_incident(record(caseCreationTimestamp=created), "cases", None)


async def test_regions_have_endpoints(clock):
    async with open_provider(Exabeam, clock=clock, region="eu", **SETTINGS) as provider:
        assert provider.settings.url == "https://api.eu.exabeam.cloud"


async def test_alerts_cannot_be_written_to(clock):
    wrong = open_provider(Exabeam, clock=clock, records="alerts", write_back=True, **SETTINGS)
    with pytest.raises((ValueError, Misconfigured), match='only available with records = "cases"'):
        async with wrong:
            pass


@pytest.fixture
async def subscription(clock: ManualClock):
    async with ExabeamSimulator(Siem(clock)) as simulator:
        yield simulator


@pytest.fixture
def opened(subscription, clock):
    return lambda **settings: open_provider(
        Exabeam, clock=clock, url=subscription.url, **SETTINGS, **settings
    )


async def test_query_of_the_operator_is_sent(subscription, opened, clock):
    async with opened(filter='NOT priority:"LOW"') as provider:
        window = Window(clock.now() - timedelta(hours=1), clock.now())
        await list_records(provider, "new", window)
    assert subscription.asked[0]["filter"] == 'NOT priority:"LOW"'


async def test_alerts_are_read_instead_of_cases(subscription, opened, clock):
    put_case(subscription, CASE)
    async with opened(records="alerts") as provider:
        window = Window(clock.now() - timedelta(hours=4), clock.now())
        (found,) = await list_records(provider, "new", window)
        assert (await provider.incident(CASE)).external_id == CASE
    assert "alertCreationTimestamp" in found


async def test_cases_of_one_second_are_read_though_there_are_no_pages(subscription, opened):
    """Searches are precise to the second, and cases to the microsecond."""
    at = datetime(2026, 11, 20, 12, tzinfo=UTC)
    for number in range(9):
        created_at = at + timedelta(microseconds=number)
        put_case(subscription, f"c{number}", created_at=created_at)
    async with opened() as provider:
        window = Window(at - timedelta(minutes=1), at + timedelta(minutes=1))
        records = await list_records(provider, "new", window, 2)
    assert {record["caseId"] for record in records} == {f"c{number}" for number in range(9)}


async def test_changed_cases_are_read_again(subscription, opened, clock):
    """A change does not move the time that cases are found by."""
    put_case(subscription, "untouched")
    put_case(subscription, CASE, changed_at=clock.now() - timedelta(minutes=5))
    async with opened() as provider:
        window = Window(clock.now() - timedelta(minutes=15), clock.now())
        records = await list_records(provider, "changed", window)
    assert [record["caseId"] for record in records] == [CASE]


async def test_errors_despite_success_are_no_empty_list(subscription, opened, clock):
    subscription.errors = {"message": "invalid filter"}
    async with opened() as provider:
        window = Window(clock.now() - timedelta(hours=1), clock.now())
        with pytest.raises(Broken, match="invalid filter"):
            await provider.list_changes("new", window, None, 10)


@pytest.mark.parametrize(
    ("status", "change"),
    [
        (IncidentStatus.ACTIVE, {"stage": "Triage"}),
        (IncidentStatus.CLOSED, {"stage": "CLOSED", "closedReason": "Other"}),
    ],
)
async def test_stage_is_set_once(subscription, opened, status, change):
    put_case(subscription, CASE)
    async with opened(write_back_status="Active", write_back=True, active_stage="Triage") as own:
        for _ in range(2):
            await own.set_status(CASE, status)
    assert subscription.changes == [change]


async def test_stage_of_a_missing_case_is_refused(opened):
    async with opened() as provider:
        with pytest.raises(Refused, match="c9 does not exist"):
            await provider.set_status("c9", IncidentStatus.CLOSED)


@pytest.mark.parametrize("writing", ["write_back", "close_from_tickets"])
@pytest.mark.parametrize(
    ("path", "permission"),
    [
        ("/search/v2/events", "Search: Read"),
        ("/threat-center/v2/cases", "Threat Center Cases: Read, Write, and Delete"),
    ],
)
async def test_missing_permissions_are_named(subscription, opened, path, permission, writing):
    subscription.forbidden.add(path)
    async with opened(**{writing: True}) as provider:
        (problem,) = (await provider.check()).problems
    assert problem == f"the API key lacks the permission {permission}"
    async with opened(event_search=False) as provider:
        assert (await provider.check()).problems == ()
    assert not subscription.changes


async def test_events_are_searched_unless_turned_off(subscription, opened, clock):
    at = clock.now() - timedelta(minutes=10)
    event = LogEvent(id="e1", occurred_at=at, entities=(SOURCE,), text="app-login")
    subscription.siem.log(event)
    window, found = Window(at - timedelta(hours=1), clock.now()), {}
    for on in (True, False):
        async with opened(event_search=on) as provider:
            found[on] = [event.summary async for event in provider.events(SOURCE, window, 10)]
    assert found == {True: ["app-login"], False: []}
