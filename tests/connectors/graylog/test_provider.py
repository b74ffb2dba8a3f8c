"""Mapping of Graylog's events, and the requests that read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.connectors.graylog.simulator import SETTINGS, GraylogSimulator
from tests.connectors.stored_cases import list_records, put_case

from tocsin import Alert, Entity, EntityKind, Incident, Severity, Window
from tocsin.testing import LogEvent, ManualClock, Siem, open_provider
from tocsin_connectors.siem.graylog import Graylog, tocsin_providers
from tocsin_connectors.siem.graylog.mapping import build_incident

ADDRESS, USER = Entity(EntityKind.IP, "203.0.113.9"), Entity(EntityKind.USER, "ann")
CONSOLE = "https://graylog.example.org"


def event(**changes: Any) -> dict[str, Any]:
    """An alert on failed sign-ins, as the API returns it, with its definition."""
    return {
        "id": "01JCVWKZTSWXN3G3GCEWT6ECD9",
        "event_definition_type": "aggregation-v1",
        "event_definition_id": "5d39b99c635e6d46f820cdb1",
        "origin_context": "urn:graylog:message:es:graylog_0:92e0c9c0",
        "timestamp": "2026-11-20T12:34:56.789Z",
        "timestamp_processing": "2026-11-20T12:36:01.123Z",
        "timerange_start": "2026-11-20T12:30:00.000Z",
        "timerange_end": "2026-11-20T12:35:00.000Z",
        "streams": ["000000000000000000000002"],
        "source_streams": ["5d28510a7e8acd3a598da558"],
        "message": "Failed sign-ins from one address",
        "source": "graylog-1",
        "key_tuple": ["203.0.113.9"],
        "key": "203.0.113.9",
        "priority": 3,
        "scores": {"normalized_risk": 62.5},
        "associated_assets": [],
        "tags": ["linux"],
        "alert": True,
        "fields": {"user_name": "ann", "note": "see evil.example"},
        "group_by_fields": {"source_ip": "203.0.113.9", "destination_hostname": "bastion"},
        "aggregation_conditions": {"count()": 13.0},
        "replay_info": None,
        "tactics_techniques": ["TA0006", "T1110", "T1110.003"],
        "event_definition": {
            "id": "5d39b99c635e6d46f820cdb1",
            "title": "Password spraying",
            "description": "More than ten failed sign-ins in five minutes.",
            "remediation_steps": "Block the address.",
        },
    } | changes


def test_plugin_hook_returns_the_provider():
    assert tocsin_providers() is Graylog


def test_event_becomes_incident():
    bastion = Entity(EntityKind.HOST, "bastion")
    occurred_at = datetime(2026, 11, 20, 12, 34, 56, 789000, UTC)
    assert build_incident(event(), CONSOLE) == Incident(
        external_id="01JCVWKZTSWXN3G3GCEWT6ECD9",
        title="Failed sign-ins from one address",
        description=(
            "Event definition: Password spraying\n"
            "More than ten failed sign-ins in five minutes.\n"
            "Key: 203.0.113.9\n"
            "Condition: count() = 13\n"
            "Remediation: Block the address."
        ),
        severity=Severity.HIGH,
        raw_severity="3",
        occurred_at=occurred_at,
        changed_at=datetime(2026, 11, 20, 12, 36, 1, 123000, UTC),
        source_url=f"{CONSOLE}/alerts/01JCVWKZTSWXN3G3GCEWT6ECD9/replay-search",
        techniques=("T1110", "T1110.003"),
        tactics=("TA0006",),
        entities=(ADDRESS, bastion, USER),
        sources=(ADDRESS,),
        targets=(bastion,),
        alerts=(
            Alert(
                external_id="01JCVWKZTSWXN3G3GCEWT6ECD9",
                title="Password spraying",
                severity=Severity.HIGH,
                occurred_at=occurred_at,
                rule="Password spraying",
            ),
        ),
    )


@pytest.mark.parametrize(
    ("priority", "severity", "assumed"),
    [
        (0, Severity.INFORMATIONAL, False),
        (1, Severity.LOW, False),
        (4, Severity.CRITICAL, False),
        (9, Severity.MEDIUM, True),
        (None, Severity.MEDIUM, True),
    ],
)
def test_priorities(priority, severity, assumed):
    incident = build_incident(event(priority=priority), CONSOLE)
    assert (incident.severity, incident.severity_assumed) == (severity, assumed)


def test_event_without_a_definition_lends_its_alert_the_message():
    [alert] = build_incident(event(event_definition=None), CONSOLE).alerts
    assert alert.title == "Failed sign-ins from one address"
    assert alert.rule == "5d39b99c635e6d46f820cdb1"


def test_sigma_tags_of_older_versions_are_read():
    tags = {"sigma_rule_tag_1": "attack.credential-access", "sigma_rule_tag_2": "attack.t1003.001"}
    incident = build_incident(event(tactics_techniques=[], fields=tags), CONSOLE)
    assert (incident.tactics, incident.techniques) == (("TA0006",), ("T1003.001",))


@pytest.mark.parametrize("moment", [None, 7, "yesterday"])
def test_event_without_a_time_is_rejected(moment):
    with pytest.raises(ValueError, match=r"time|Invalid"):
        build_incident(event(timestamp_processing=moment), CONSOLE)


def test_times_of_stored_events_are_read():
    incident = build_incident(event(timestamp="2019-08-21 07:48:01.326"), CONSOLE)
    assert incident.occurred_at == datetime(2019, 8, 21, 7, 48, 1, 326000, UTC)


@pytest.fixture
async def server(clock: ManualClock):
    async with GraylogSimulator(Siem(clock)) as simulator:
        yield simulator


@pytest.fixture
def opened(server, clock):
    return lambda **settings: open_provider(
        Graylog, clock=clock, url=server.url, **SETTINGS, **settings
    )


async def test_alerts_alone_are_read_by_default(server, opened, clock):
    window = Window(clock.now() - timedelta(hours=1), clock.now())
    for events in ("alerts", "all"):
        async with opened(events=events) as provider:
            await list_records(provider, "changed", window)
    assert [body["filter"]["alerts"] for body in server.asked] == ["only", "include"]
    assert all(body["timerange"] == {"type": "relative", "range": 0} for body in server.asked)


async def test_pages_follow_the_time_of_the_last_event(server, opened, clock):
    """A search returns at most 10,000 events on all its pages."""
    begin = clock.now() - timedelta(minutes=30)
    for number in range(5):
        put_case(server, f"e{number}", created_at=begin + timedelta(seconds=number // 2))
    async with opened() as provider:
        window = Window(begin - timedelta(hours=1), clock.now())
        records = await list_records(provider, "changed", window, 2)
    assert {record["id"] for record in records} == {f"e{number}" for number in range(5)}
    assert {body["page"] for body in server.asked} <= {1, 2}


async def test_events_about_graylog_are_left_out(opened):
    async with opened() as provider:
        assert provider.to_incident(event(event_definition_type="system-notifications-v1")) is None
    async with opened(excluded_types=[]) as provider:
        assert provider.to_incident(event(event_definition_type="system-notifications-v1"))


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("/api/streams/000000000000000000000002", 'read access to the "All events" stream'),
        ("/api/search/messages", "permission to search messages"),
    ],
)
async def test_missing_rights_are_named(server, opened, path, named):
    """Without access to the stream, searches find nothing, and are no error."""
    server.forbidden.add(path)
    async with opened() as provider:
        (problem,) = (await provider.check()).problems
    assert named in problem


async def test_renamed_definition_is_no_new_version(opened):
    async with opened() as provider:
        renamed = event(event_definition={"title": "Another name"})
        assert provider.record_version(event()) == provider.record_version(renamed)


async def test_messages_are_events(server, opened, clock):
    at = clock.now() - timedelta(minutes=10)
    server.siem.log(LogEvent(id="m1", occurred_at=at, entities=(ADDRESS,), text="denied"))
    async with opened() as provider:
        window = Window(at - timedelta(hours=1), clock.now())
        (found,) = [one async for one in provider.events(ADDRESS, window, 10)]
    assert (found.summary, found.external_id) == ("denied (fw-1)", "m1")
    assert found.entities == (ADDRESS,)
