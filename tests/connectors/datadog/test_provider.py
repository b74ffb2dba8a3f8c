"""Mapping of Datadog's signals, and the requests that read and change them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.connectors.datadog.simulator import SETTINGS, DatadogSimulator
from tests.connectors.stored_cases import list_records, put_case

from tocsin import Alert, Entity, EntityKind, Incident, IncidentStatus, Refused, Severity, Window
from tocsin.providers import retry_after
from tocsin.testing import LogEvent, ManualClock, Siem, open_provider
from tocsin_connectors.siem.datadog import Datadog, tocsin_providers
from tocsin_connectors.siem.datadog.mapping import build_incident

CONSOLE = "https://app.datadoghq.eu"
ADDRESS, USER = Entity(EntityKind.IP, "203.0.113.9"), Entity(EntityKind.USER, "ann")
HOST = Entity(EntityKind.HOST, "bastion")
NAME = "AQAAAYAeDX6RQ1MmRQAAAABBWUFl"


def signal(where: str = "attributes", **changes: Any) -> dict[str, Any]:
    """A signal of a workload rule, as the API returns it; `where` nests its own attributes."""
    custom = {
        "title": "Sign-in brute force - successful",
        "status": "info",
        "entities": ["host:bastion", "@usr.id:ann", "@network.client.ip:203.0.113.9"],
        "hostname": "bastion",
        "usr": {"id": "ann"},
        "network": {"client": {"ip": "203.0.113.9"}},
        "process": {"executable": {"path": "/usr/sbin/sshd", "name": "sshd"}, "args": "-D"},
        "workflow": {
            "rule": {"id": "xgh-dfy-ywf", "name": "Sign-in brute force"},
            "first_seen": "2026-11-20T12:30:00.000Z",
            "last_seen": "2026-11-20T12:40:00.000Z",
            "triage": {
                "state": "under_review",
                "stateUpdateTimestamp": 1795179600000,
                "archiveReason": "none",
                "incidentIds": [],
                "assignee": {"name": "Ben", "id": 7},
            },
        },
        "samples": [
            {
                "content": {
                    "custom": {"network": {"destination": {"ip": "192.0.2.80"}}},
                    "message": "see evil.example",
                }
            }
        ],
        "triggeringRuleCase": {"status": "high", "name": "successful"},
    } | changes.pop("custom", {})
    return {
        "id": NAME,
        "type": "signal",
        "attributes": {
            "status": "high",
            "timestamp": "2026-11-20T12:34:56.789Z",
            "host": "bastion",
            "tags": [
                "security:attack",
                "technique:t1110-brute-force",
                "technique:t1110.003-password-spraying",
                "tactic:ta0006-credential-access",
            ],
            "message": "Many failed sign-ins before a successful one.",
            where: custom,
        },
    } | changes


def test_plugin_hook_returns_the_provider():
    assert tocsin_providers() is Datadog


@pytest.mark.parametrize("where", ["attributes", "custom"])
def test_signal_becomes_incident(where):
    server = Entity(EntityKind.IP, "192.0.2.80")
    occurred_at = datetime(2026, 11, 20, 12, 30, tzinfo=UTC)
    assert build_incident(signal(where), CONSOLE) == Incident(
        external_id=NAME,
        title="Sign-in brute force - successful",
        description="Many failed sign-ins before a successful one.\nRule: Sign-in brute force",
        severity=Severity.HIGH,
        raw_severity="high",
        status=IncidentStatus.ACTIVE,
        raw_status="under_review",
        occurred_at=occurred_at,
        changed_at=datetime(2026, 11, 20, 13, tzinfo=UTC),
        source_url=f"{CONSOLE}/security?event={NAME}",
        techniques=("T1110", "T1110.003"),
        tactics=("TA0006",),
        entities=(
            *(HOST, USER, ADDRESS, Entity(EntityKind.FILE, "/usr/sbin/sshd")),
            *(Entity(EntityKind.PROCESS, "sshd"), server),
        ),
        sources=(ADDRESS,),
        targets=(server,),
        alerts=(
            Alert(
                external_id=NAME,
                title="Sign-in brute force",
                severity=Severity.HIGH,
                occurred_at=occurred_at,
                rule="Sign-in brute force",
            ),
        ),
    )


def test_rule_without_a_name_has_its_id():
    record = signal(custom={"workflow": {"rule": {"id": "xgh-dfy-ywf"}}})
    [alert] = build_incident(record, CONSOLE).alerts
    assert alert.rule == "xgh-dfy-ywf"


@pytest.mark.parametrize(
    ("word", "severity", "assumed"),
    [
        ("info", Severity.INFORMATIONAL, False),
        ("Low", Severity.LOW, False),
        ("critical", Severity.CRITICAL, False),
        ("urgent", Severity.MEDIUM, True),
    ],
)
def test_severities(word, severity, assumed):
    record = signal()
    record["attributes"]["status"] = word
    incident = build_incident(record, CONSOLE)
    assert (incident.severity, incident.severity_assumed) == (severity, assumed)


@pytest.mark.parametrize("moment", [None, 7, "yesterday", "2026-11-20T12:34:56"])
def test_signal_without_a_time_is_rejected(moment):
    record = signal()
    record["attributes"]["timestamp"] = moment
    with pytest.raises(ValueError, match="time"):
        build_incident(record, CONSOLE)


@pytest.mark.parametrize(
    ("site", "api", "console"),
    [
        ("datadoghq.com", "https://api.datadoghq.com", "https://app.datadoghq.com"),
        ("us5.datadoghq.com", "https://api.us5.datadoghq.com", "https://us5.datadoghq.com"),
        ("ddog-gov.com", "https://api.ddog-gov.com", "https://app.ddog-gov.com"),
    ],
)
async def test_sites_have_endpoints(clock, site, api, console):
    async with open_provider(Datadog, clock=clock, site=site, **SETTINGS) as provider:
        assert provider.settings.url == api
        found = provider.to_incident(signal())
    assert found.source_url.startswith(f"{console}/security?")


def test_rate_limit_is_waited_out():
    now = datetime(2026, 11, 20, tzinfo=UTC)
    assert retry_after({"X-RateLimit-Reset": "17"}, now) == timedelta(seconds=17)
    assert retry_after({"X-RateLimit-Reset": "1795179600"}, now) is None
    both = {"X-RateLimit-Reset": "17", "Retry-After": "5"}
    assert retry_after(both, now) == timedelta(seconds=5)


@pytest.fixture
async def organization(clock: ManualClock):
    async with DatadogSimulator(Siem(clock)) as simulator:
        yield simulator


@pytest.fixture
def opened(organization, clock):
    return lambda **settings: open_provider(
        Datadog, clock=clock, url=organization.url, **SETTINGS, **settings
    )


async def test_query_of_the_operator_is_sent(organization, opened, clock):
    async with opened(query="status:high") as provider:
        window = Window(clock.now() - timedelta(hours=1), clock.now())
        await list_records(provider, "new", window)
    assert organization.asked[0]["filter"]["query"] == "status:high"


@pytest.mark.parametrize("shows_time", [True, False])
async def test_triaged_signals_are_read_again(organization, opened, clock, shows_time):
    """Triage does not move the timestamp that signals are found by."""
    organization.shows_triage_time = shows_time
    put_case(organization, "untouched")
    closed_at, status = clock.now() - timedelta(minutes=5), IncidentStatus.CLOSED
    put_case(organization, "s1", changed_at=closed_at, status=status)
    async with opened() as provider:
        window = Window(clock.now() - timedelta(minutes=15), clock.now())
        records = await list_records(provider, "changed", window)
    assert [record["id"] for record in records] == ["s1"]


async def test_state_is_set_once(organization, opened):
    put_case(organization, "s1")
    async with opened(write_back_status="Active") as provider:
        for _ in range(2):
            await provider.set_status("s1", IncidentStatus.CLOSED)
    (body,) = organization.states
    assert body["data"]["attributes"]["state"] == "archived"


async def test_state_of_a_missing_signal_is_refused(opened):
    async with opened(write_back_status="Active") as provider:
        with pytest.raises(Refused, match="s9 does not exist"):
            await provider.set_status("s9", IncidentStatus.CLOSED)


@pytest.mark.parametrize("writing", [{"write_back_status": "Active"}, {"close_from_tickets": True}])
@pytest.mark.parametrize("permission", ["logs_read_data", "security_monitoring_signals_write"])
async def test_missing_permissions_are_named(organization, opened, permission, writing):
    organization.lacks.add(permission)
    async with opened(**writing) as provider:
        (problem,) = (await provider.check()).problems
    assert problem == f"the application key lacks the permission {permission}"
    async with opened(log_search=False) as provider:
        assert (await provider.check()).problems == ()
    assert not organization.states


async def test_logs_are_searched_unless_turned_off(organization, opened, clock):
    at = clock.now() - timedelta(minutes=10)
    organization.siem.log(LogEvent(id="l1", occurred_at=at, entities=(ADDRESS,), text="denied"))
    window, found = Window(at - timedelta(hours=1), clock.now()), {}
    for on in (True, False):
        async with opened(log_search=on) as provider:
            found[on] = [event.summary async for event in provider.events(ADDRESS, window, 10)]
    assert found == {True: ["denied"], False: []}
