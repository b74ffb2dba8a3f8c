"""Mapping of InsightIDR's investigations, and the requests that read and change them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.connectors.insightidr.simulator import SETTINGS, TOKEN, InsightIDRSimulator
from tests.connectors.stored_cases import list_records, put_case

from tocsin import Alert, Entity, EntityKind, Incident, IncidentStatus, Refused, Severity, Window
from tocsin.testing import ManualClock, Siem, open_provider
from tocsin_connectors.siem.insightidr import InsightIDR, tocsin_providers
from tocsin_connectors.siem.insightidr.mapping import build_incident

RRN = "rrn:investigation:eu:0a1b2c3d:investigation:4K523W2J8VAQ"
ALERT = "rrn:alerts:eu1:0a1b2c3d:alert:1:a003"
RULE = "rrn:cba:::detection-rule:1"
SOURCE, SERVER = Entity(EntityKind.IP, "203.0.113.9"), Entity(EntityKind.HOST, "files-1")
ACCOUNT = Entity(EntityKind.USER, "ann@example.com")


def investigation(**changes: Any) -> dict[str, Any]:
    """An investigation with one alert, its details, and its evidence as an object and as JSON."""
    login = {
        "timestamp": "2026-11-20T12:30:00.000Z",
        "user": "Ann Example",
        "account": "ann@example.com",
        "result": "SUCCESS",
        "source_ip": "203.0.113.9",
        "service": "o365",
        "geoip_organization": "Example Net",
        "source_json": {"ClientIP": "203.0.113.99", "UserId": "other@example.com"},
        "r7_context": {"user": {"type": "user", "rrn": "rrn:uba:eu:1:user:2", "name": "Ann"}},
    }
    access = {
        "source_asset_address": "203.0.113.9",
        "destination_asset": "files-1",
        "destination_asset_address": "files-1",
        "destination_account": "svc-backup",
        "destination_user": "Backup Service",
        "process": {"name": "cmd.exe", "exe_path": "C:\\Windows\\cmd.exe", "cmd_line": "evil.test"},
    }
    return {
        "rrn": RRN,
        "title": "Suspicious Authentication",
        "source": "ALERT",
        "priority": "HIGH",
        "status": "WAITING",
        "disposition": "MALICIOUS",
        "created_time": "2026-11-20T12:34:56.789Z",
        "first_alert_time": "2026-11-20T12:33:00Z",
        "latest_alert_time": "2026-11-20T12:50:00Z",
        "last_accessed": "2026-11-20T13:00:00Z",
        "assignee": {"email": "ben@example.com", "name": "Ben"},
        "tags": ["vip"],
        "alerts": [
            {
                "id": ALERT,
                "title": "Novel ASN",
                "alert_type": "Suspicious Ingress",
                "created_time": "2026-11-20T12:33:00Z",
                "first_event_time": "2026-11-20T12:30:00Z",
                "detection_rule_rrn": {"rule_rrn": RULE, "rule_name": "Novel ASN for User"},
                "details": {
                    "priority": "LOW",
                    "rule": {"mitre_tcodes": ["Credential Access", "T1110", "T1110.003"]},
                    "rule_keys_of_interest": [
                        {"key": "source_ip", "values": ["203.0.113.9"]},
                        {"key": "geoip_country_code", "values": ["US"]},
                    ],
                    "organization": {"product_token": TOKEN},
                },
                "evidence": [
                    {"event_type": "ingress_auth", "data": login},
                    {"event_type": "asset_auth", "data": json.dumps(access)},
                ],
            }
        ],
    } | changes


def test_plugin_hook_returns_the_provider():
    assert tocsin_providers() is InsightIDR


def test_investigation_becomes_incident():
    occurred_at = datetime(2026, 11, 20, 12, 30, tzinfo=UTC)
    backup = Entity(EntityKind.USER, "svc-backup")
    assert build_incident(investigation(), "eu", None) == Incident(
        external_id=RRN,
        external_number="4K523W2J8VAQ",
        title="Suspicious Authentication",
        description="Source: ALERT\nDisposition: MALICIOUS\nTags: vip",
        severity=Severity.HIGH,
        raw_severity="HIGH",
        status=IncidentStatus.ACTIVE,
        raw_status="WAITING",
        occurred_at=occurred_at,
        changed_at=datetime(2026, 11, 20, 13, tzinfo=UTC),
        source_url=f"https://eu.idr.insight.rapid7.com/op/{TOKEN}#/investigations/{RRN}",
        techniques=("T1110", "T1110.003"),
        tactics=("TA0006",),
        entities=(
            *(SOURCE, ACCOUNT, SERVER, backup, Entity(EntityKind.PROCESS, "cmd.exe")),
            Entity(EntityKind.FILE, "C:\\Windows\\cmd.exe"),
        ),
        sources=(SOURCE,),
        targets=(SERVER, backup),
        alerts=(
            Alert(
                external_id=ALERT,
                title="Novel ASN",
                severity=Severity.LOW,
                occurred_at=occurred_at,
                rule="Novel ASN for User",
            ),
        ),
    )


@pytest.mark.parametrize(("rule", "name"), [({"rule_rrn": RULE}, RULE), (RULE, RULE), (None, None)])
def test_alert_without_the_name_of_its_rule(rule, name):
    first_alert_time = "2026-11-20T12:33:00Z"
    alert = {"id": ALERT, "created_time": first_alert_time, "detection_rule_rrn": rule}
    [found] = build_incident(investigation(alerts=[alert]), "eu", None).alerts
    assert found.rule == name


@pytest.mark.parametrize(
    ("word", "severity", "assumed"),
    [
        ("Low", Severity.LOW, False),
        ("CRITICAL", Severity.CRITICAL, False),
        ("INFO", Severity.INFORMATIONAL, False),
        ("UNSPECIFIED", Severity.MEDIUM, True),
    ],
)
def test_priorities(word, severity, assumed):
    incident = build_incident(investigation(priority=word), "eu", None)
    assert (incident.severity, incident.severity_assumed) == (severity, assumed)


@pytest.mark.parametrize("data", ["{", '["x"]', 7, None])
def test_invalid_evidence_is_skipped(data):
    alert = {"id": ALERT, "evidence": [{"data": data}, {"data": {"source_ip": "203.0.113.9"}}]}
    assert build_incident(investigation(alerts=[alert]), "eu", None).entities == (SOURCE,)


@pytest.mark.parametrize("moment", [None, 7, "yesterday", "2026-11-20T12:34:56"])
def test_investigation_without_a_time_is_rejected(moment):
    with pytest.raises(ValueError, match="time"):
        build_incident(investigation(created_time=moment), "eu", None)


async def test_regions_have_endpoints(clock):
    page = "https://us2.idr.insight.rapid7.com/op/ABC"
    settings = {"region": "us2", "web_url": page, **SETTINGS}
    async with open_provider(InsightIDR, clock=clock, **settings) as provider:
        assert provider.settings.url == "https://us2.api.insight.rapid7.com"
        link = provider.to_incident(investigation()).source_url
    assert link == f"{page}#/investigations/{RRN}"


@pytest.fixture
async def organization(clock: ManualClock):
    async with InsightIDRSimulator(Siem(clock)) as simulator:
        yield simulator


@pytest.fixture
def opened(organization, clock):
    return lambda **settings: open_provider(
        InsightIDR, clock=clock, url=organization.url, **SETTINGS, **settings
    )


async def test_ends_of_a_window_are_not_lost(organization, opened):
    """The search excludes both of its bounds."""
    start = datetime(2026, 11, 20, 12, tzinfo=UTC)
    times = [start, start + timedelta(milliseconds=1), start + timedelta(minutes=1)]
    for number, at in enumerate(times):
        put_case(organization, f"r{number}", created_at=at)
    async with opened() as provider:
        window = Window(start, start + timedelta(minutes=1))
        records = await list_records(provider, "new", window)
    assert [record["rrn"] for record in records] == ["r0", "r1"]


async def test_investigations_of_one_millisecond_are_on_several_pages(organization, opened):
    at = datetime(2026, 11, 20, 12, tzinfo=UTC)
    for number in range(7):
        put_case(organization, f"r{number}", created_at=at)
    async with opened() as provider:
        window = Window(at - timedelta(minutes=1), at + timedelta(minutes=1))
        records = await list_records(provider, "new", window, 3)
    assert {record["rrn"] for record in records} == {f"r{number}" for number in range(7)}


async def test_changed_investigations_are_read_again(organization, opened, clock):
    """A change does not move the time that investigations are found by."""
    put_case(organization, "untouched")
    put_case(organization, RRN, changed_at=clock.now() - timedelta(minutes=5))
    async with opened() as provider:
        window = Window(clock.now() - timedelta(minutes=15), clock.now())
        records = await list_records(provider, "changed", window)
    assert [record["rrn"] for record in records] == [RRN]


@pytest.mark.parametrize("wanted", [True, False])
async def test_details_of_alerts_are_read_unless_turned_off(organization, opened, wanted):
    put_case(organization, RRN, entities=(SOURCE,))
    async with opened(alert_details=wanted) as provider:
        incident = await provider.incident(RRN)
    assert incident.entities == ((SOURCE,) if wanted else ())
    assert [alert.title for alert in incident.alerts] == ["Brute force"]
    assert any("/idr/at/" in asked.path for asked in organization.requests) == wanted


async def test_alerts_without_details_lose_only_the_entities(organization, opened):
    """Alerts of legacy rules are not in the API of alerts."""
    put_case(organization, RRN, entities=(SOURCE,))
    organization.has_alert_api = False
    async with opened() as provider:
        incident = await provider.incident(RRN)
    assert (incident.entities, len(incident.alerts)) == ((), 1)


async def test_status_is_set_once(organization, opened):
    put_case(organization, RRN)
    async with opened(write_back_status="Active", write_back=True) as provider:
        for _ in range(2):
            await provider.set_status(RRN, IncidentStatus.ACTIVE)
    assert sum("/status/INVESTIGATING" in asked.path for asked in organization.requests) == 1


async def test_status_of_a_missing_investigation_is_refused(opened):
    async with opened() as provider:
        with pytest.raises(Refused, match="r9 does not exist"):
            await provider.set_status("r9", IncidentStatus.CLOSED)


@pytest.mark.parametrize("writing", ["write_back", "close_from_tickets"])
@pytest.mark.parametrize(
    ("forbidden", "problem"),
    [
        ("POST /idr/at/alerts", "to read the details of alerts"),
        ("PUT /idr/v2/investigations", "InsightIDR Core: View and Change"),
    ],
)
async def test_missing_permissions_are_named(organization, opened, forbidden, problem, writing):
    organization.forbidden.add(forbidden)
    async with opened(**{writing: True}) as provider:
        (found,) = (await provider.check()).problems
    assert found == f"the API key lacks the permission {problem}"
    async with opened(alert_details=False) as provider:
        assert (await provider.check()).problems == ()
