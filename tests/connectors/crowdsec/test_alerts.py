"""Mapping of CrowdSec alerts."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.connectors.json_values import JSON

from tocsin import Entity, EntityKind, Incident, IncidentStatus, Severity
from tocsin_connectors.siem.crowdsec.go_time import format_duration, parse_time
from tocsin_connectors.siem.crowdsec.mapping import (
    build_incident,
    is_blocklist,
    stabilize_decisions,
)

from .simulator import go_time, parse_duration


def alert(**changes: Any) -> dict[str, Any]:
    return {
        "id": 7,
        "created_at": "2026-11-20T09:20:21Z",
        "scenario": "crowdsecurity/ssh-bf",
        "machine_id": "bastion",
        "message": "Ip 203.0.113.7 performed crowdsecurity/ssh-bf (6 events over 30s)",
        "labels": None,
        "simulated": False,
        "start_at": "2026-11-20 09:19:51 +0000 UTC",
        "stop_at": "2026-11-20 09:20:21 +0000 UTC",
        "source": {"scope": "Ip", "value": "203.0.113.7", "ip": "203.0.113.7"},
        "decisions": None,
        "events": None,
    } | changes


def ban(duration: str = "3h59m59.391815714s", **changes: Any) -> dict[str, Any]:
    return {"id": 1, "origin": "crowdsec", "type": "ban", "duration": duration} | changes


def read(**changes: Any) -> Incident:
    return build_incident(stabilize_decisions(alert(**changes)))


def entities(**changes: Any) -> set[tuple[str, str]]:
    return {
        (entity.kind.value, entity.value) for entity in read(**{"source": None} | changes).entities
    }


def test_alert_becomes_incident():
    source = {"scope": "Ip", "value": "203.0.113.7", "cn": "ZZ", "as_name": "TEST-NET"}
    incident = read(source=source, decisions=[ban()])
    assert incident.external_id == "7@2026-11-20T09:20:21Z"
    assert incident.external_number == "7"
    assert incident.title == "crowdsecurity/ssh-bf"
    assert incident.description == (
        "Ip 203.0.113.7 performed crowdsecurity/ssh-bf (6 events over 30s)\n"
        "Network: TEST-NET ZZ\nSeen by: bastion\nDecided: ban"
    )
    assert (incident.severity, incident.severity_assumed) == (Severity.MEDIUM, True)
    assert incident.occurred_at == datetime(2026, 11, 20, 9, 19, 51, tzinfo=UTC)
    assert incident.changed_at == datetime(2026, 11, 20, 9, 20, 21, tzinfo=UTC)
    assert incident.entities == (Entity(EntityKind.IP, "203.0.113.7"),)
    assert [item.external_id for item in incident.alerts] == [incident.external_id]
    assert [item.rule for item in incident.alerts] == ["crowdsecurity/ssh-bf"]


@pytest.mark.parametrize(
    "text", ["manual 'ban' from 'bastion'", "anomaly score block: sql_injection: 10, anomaly: 10"]
)
def test_sentence_in_the_place_of_a_scenario_is_no_rule(text):
    [item] = read(scenario=text).alerts
    assert (item.title, item.rule) == (text, None)


@pytest.mark.parametrize(
    ("changes", "severity"),
    [
        ({"simulated": True}, Severity.INFORMATIONAL),
        ({"decisions": [ban(origin="cscli")]}, Severity.INFORMATIONAL),
        ({"decisions": [ban(origin="cscli-import")]}, Severity.INFORMATIONAL),
        ({"decisions": [ban(origin="cscli"), ban()]}, Severity.MEDIUM),
        ({"scenario": "crowdsecurity/http-cve-2021-41773"}, Severity.HIGH),
        ({"scenario": "crowdsecurity/jira_cve-2021-26086"}, Severity.HIGH),
        ({"scenario": "crowdsecurity/CVE-2022-26134", "simulated": True}, Severity.INFORMATIONAL),
        ({"scenario": None}, Severity.MEDIUM),
    ],
)
def test_severity_defaults(changes, severity):
    incident = read(**changes)
    assert (incident.severity, incident.severity_assumed) == (severity, True)


@pytest.mark.parametrize(
    ("durations", "status"),
    [
        (None, IncidentStatus.NEW),
        ([], IncidentStatus.NEW),
        (["3h59m59.391815714s"], IncidentStatus.NEW),
        (["-2.12s", "500ms"], IncidentStatus.NEW),
        (["-2.12s", "-12m"], IncidentStatus.CLOSED),
        ([None], IncidentStatus.NEW),
    ],
)
def test_incident_closes_when_all_decisions_ended(durations, status):
    decisions = durations and [ban(duration) for duration in durations]
    assert read(decisions=decisions).status is status


def test_alert_is_unchanged_while_its_decision_is_active():
    earlier, later = (
        stabilize_decisions(alert(decisions=[ban(left)])) for left in ("4h0m0s", "3h59m0s")
    )
    ended = stabilize_decisions(alert(decisions=[ban("-1s")]))
    assert earlier == later != ended


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"source": {"scope": "Ip", "value": "2001:db8::0001"}}, {("ip", "2001:db8::1")}),
        (
            {"source": {"scope": "Range", "value": "198.51.100.0/24", "ip": "198.51.100.0/24"}},
            set(),
        ),
        ({"source": {"scope": "username", "value": "bob", "ip": "bob"}}, {("user", "bob")}),
        ({"source": {"scope": "AS", "value": "64500"}}, set()),
        (
            {"scenario": "a/vmware-cve-2022-22954"},
            {("cve", "CVE-2022-22954")},
        ),
    ],
)
def test_entities_of_the_source(changes, found):
    assert entities(**changes) == found


def test_entities_of_events():
    meta = {
        "source_ip": "203.0.113.7",
        "target_user": "John Doe",
        "machine": "bastion",
        "target_fqdn": "Shop.Example.",
        "http_path": "/login",
        "username": "",
    }
    pairs = [{"key": key, "value": value} for key, value in meta.items()]
    assert entities(events=[{"meta": pairs}, {"meta": None}]) == {
        ("ip", "203.0.113.7"),
        ("user", "John Doe"),
        ("host", "bastion"),
        ("domain", "shop.example"),
    }


def test_techniques_come_from_labels_or_scenario():
    labels = ["attack.T1595", "attack:t1595.002", "behavior:ssh:bruteforce", 7]
    assert read(labels=labels).techniques == ("T1595", "T1595.002")
    assert read().techniques == ("T1110",)


@pytest.mark.parametrize("start", [None, "soon", "0001-01-01 00:00:00 +0000 UTC"])
def test_alert_without_start_time_uses_creation_time(start):
    assert read(start_at=start).occurred_at == datetime(2026, 11, 20, 9, 20, 21, tzinfo=UTC)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"id": None}, "id is missing"),
        ({"id": "7"}, "id is of the wrong type"),
        ({"created_at": None}, "created_at is not a time: None"),
        ({"created_at": "2026-11-20T09:20:21"}, "created_at is not a time"),
    ],
)
def test_missing_required_fields_are_rejected(changes, reason):
    with pytest.raises(ValueError, match=reason):
        read(**changes)


@given(changes=st.dictionaries(st.sampled_from(sorted(alert())), JSON, max_size=4))
def test_any_field_may_have_any_type(changes):
    record = alert(**changes)
    assert is_blocklist(record) in (True, False)
    with contextlib.suppress(ValueError):  # a record may be rejected, and nothing else
        assert build_incident(stabilize_decisions(record)) == build_incident(
            stabilize_decisions(record)
        )


@given(
    scope=st.sampled_from(["crowdsecurity/community-blocklist", "lists:x", "Ip", "list", ""]),
)
def test_blocklists_are_detected_by_scope(scope):
    assert is_blocklist(alert(source={"scope": scope})) is (len(scope) > 4)


@given(moment=st.datetimes(timezones=st.just(UTC), min_value=datetime(1000, 1, 1)))  # noqa: DTZ001
def test_go_times_are_parsed(moment):
    assert parse_time(go_time(moment)) == moment
    assert parse_time(moment.isoformat()) == moment


@pytest.mark.parametrize(
    ("text", "microsecond"),
    [
        ("2026-11-20 09:19:51.123456789 +0000 UTC", 123456),
        ("2026-11-20 10:19:51.5 +0100 CET", 500000),
        ("2026-11-20 09:19:51.5 +0000 UTC m=+0.001", 500000),
        ("2026-11-20T09:19:51.123456789Z", 123456),
        ("2026-11-20T10:19:51+01:00", 0),
    ],
)
def test_time_formats_are_parsed(text, microsecond):
    assert parse_time(text) == datetime(2026, 11, 20, 9, 19, 51, microsecond, UTC)


@given(text=st.text() | st.from_regex(r"[\d-]{8,11} [\d:.]{6,12} [+-]\d{4} \w+", fullmatch=True))
def test_invalid_times_are_value_errors(text):
    with contextlib.suppress(ValueError):
        assert parse_time(text).tzinfo is UTC


@given(length=st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=36_500)))
def test_durations_are_formatted_for_go(length):
    assert abs(parse_duration(format_duration(length)) - length) <= timedelta(microseconds=1)
