"""Mapping of Wazuh 4 alerts and Wazuh 5 findings."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.connectors.indices.asking import everywhere
from tests.connectors.json_values import JSON

from tocsin import Entity, EntityKind, Incident, Severity
from tocsin_connectors.siem.records import contains_entity
from tocsin_connectors.siem.wazuh.events import build_event
from tocsin_connectors.siem.wazuh.groups import (
    AlertGroup,
    AlertTally,
    apply_tally,
    build_dashboard_url,
    build_incident,
)
from tocsin_connectors.siem.wazuh.queries import ENTITY_FIELDS

HOUR = timedelta(hours=1)
ALERT = {
    "@timestamp": "2026-11-20T09:19:51.250+0000",
    "timestamp": "2026-11-20T09:19:51.250+0000",
    "id": "1795166391.49031",
    "rule": {
        "id": "5710",
        "level": 5,
        "description": "sshd: Attempt to login using a non-existent user",
        "groups": ["syslog", "sshd"],
        "mitre": {"id": ["T1110.001", "T1021.004"], "tactic": ["Credential Access"]},
    },
    "agent": {"id": "001", "name": "web-1", "ip": "10.0.0.5"},
    "manager": {"name": "manager-1"},
    "data": {"srcip": "203.0.113.7", "srcport": "52044", "srcuser": "oracle"},
    "predecoder": {"program_name": "sshd", "hostname": "web-1"},
    "full_log": "Failed password for oracle from 203.0.113.99 port 52044",
    "location": "/var/log/auth.log",
}
FINDING = {
    "@timestamp": "2026-11-20T09:19:51.250Z",
    "wazuh": {
        "rule": {
            "id": "sigma-7",
            "title": "Guessed password",
            "level": "high",
            "mitre": {"technique": {"id": ["T1110"]}, "tactic": {"id": ["TA0001"]}},
        },
        "agent": {"id": "001", "host": {"hostname": "web-1", "ip": ["10.0.0.5"]}},
    },
    "source.ip": ["203.0.113.7"],
    "source": {"port": 52044},
    "user": {"name": "oracle"},
    "event": {"original": "Failed password from 203.0.113.99", "action": "authentication-failure"},
}


def hit(document: Any, **changes: Any) -> dict[str, Any]:
    source = {**document, **changes} if isinstance(document, dict) else document
    return {"_index": "i", "_id": "a1", "_source": source}


def read(document: Any = ALERT, **changes: Any) -> Incident:
    return build_incident([hit(document, **changes)], HOUR)


def named(incident: Incident) -> set[tuple[str, str]]:
    return {(entity.kind.value, entity.value) for entity in incident.entities}


def test_alert_is_grouped_by_rule_agent_and_hour():
    incident = read()
    assert incident.external_id == "5710/001/web-1/2026-11-20T09:00:00+00:00"
    assert (incident.external_number, incident.raw_severity) == ("5710", "5")
    assert (incident.severity, incident.severity_assumed) == (Severity.LOW, False)
    assert incident.techniques == ("T1110.001", "T1021.004")
    assert incident.tactics == ("TA0006",)
    assert [(alert.external_id, alert.rule) for alert in incident.alerts] == [("a1", "5710")]
    assert incident.changed_at == datetime(2026, 11, 20, 9, 19, 51, 250_000, UTC)
    assert named(incident) == {
        *(("host", "web-1"), ("ip", "10.0.0.5"), ("ip", "203.0.113.7"), ("user", "oracle")),
    }


def test_nested_and_dotted_findings_are_parsed():
    incident = read(FINDING)
    assert incident.external_id == "sigma-7/001/-/2026-11-20T09:00:00+00:00"
    assert (incident.title, incident.severity) == ("Guessed password", Severity.HIGH)
    assert [alert.rule for alert in incident.alerts] == ["sigma-7"]
    assert incident.techniques == ("T1110",)
    assert incident.tactics == ("TA0001",)
    assert named(incident) == {
        *(("host", "web-1"), ("ip", "10.0.0.5"), ("ip", "203.0.113.7"), ("user", "oracle")),
    }


@pytest.mark.parametrize(
    ("level", "severity", "assumed"),
    [
        *((0, Severity.INFORMATIONAL, False), (3, Severity.INFORMATIONAL, False)),
        *((4, Severity.LOW, False), (6, Severity.LOW, False), (7, Severity.MEDIUM, False)),
        *(("11", Severity.MEDIUM, False), ("12", Severity.HIGH, False), (14, Severity.HIGH, False)),
        *((15, Severity.CRITICAL, False), (16, Severity.CRITICAL, False)),
        *(("CRITICAL", Severity.CRITICAL, False), ("informational", Severity.INFORMATIONAL, False)),
        *(
            (17, Severity.MEDIUM, True),
            (None, Severity.MEDIUM, True),
            ("p1", Severity.MEDIUM, True),
        ),
    ],
)
def test_levels_are_numbers_or_words(level, severity, assumed):
    incident = read(rule={"id": "1", "level": level})
    assert (incident.severity, incident.severity_assumed) == (severity, assumed)


@pytest.mark.parametrize(
    "written",
    [
        "2026-11-20T09:19:51.250123456Z",
        "2026-11-20T15:04:51.2501234+05:45",
        "2026-11-20T09:19:51.250+0000",
    ],
)
def test_times_have_any_precision_and_zone(written):
    moment = read(**{"@timestamp": written}).occurred_at
    assert abs(moment - datetime(2026, 11, 20, 9, 19, 51, 250_000, UTC)) < timedelta(milliseconds=1)


def test_file_hashes_and_windows_fields_are_entities():
    digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    windows = {"eventdata": {"targetUserName": "ann"}, "system": {"computer": "dc.example.com"}}
    found = named(read(syscheck={"path": "/etc/passwd", "sha256_after": digest}))
    assert {("file", "/etc/passwd"), ("file_hash", digest)} <= found
    found = named(read(data={"win": windows}))
    assert {("user", "ann"), ("host", "dc.example.com")} <= found


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"rule": None}, "rule.id is missing"),
        ({"rule": {"level": 3}}, "rule.id is of the wrong type"),
        ({"@timestamp": None, "timestamp": None}, "@timestamp is missing"),
        ({"@timestamp": "2026-11-20T09:19:51", "timestamp": None}, "has no time zone"),
    ],
)
def test_missing_required_fields_are_rejected(changes, reason):
    with pytest.raises(ValueError, match=reason):
        read(**changes)


def test_count_is_in_the_description():
    incident, group = (
        read(),
        AlertGroup("5710", "001", "web-1", datetime(2026, 11, 20, 9, tzinfo=UTC)),
    )
    latest = {"hits": {"hits": [{"_source": {"rule": {"id": "5710", "level": 10}}}]}}
    bucket = {
        "doc_count": 1234,
        "first": {"value": 1_795_165_200_000.0},
        "last": {"value": 1_795_168_799_999.0},
        "latest": latest,
    }
    told = apply_tally(incident, group, AlertTally.read(bucket))
    assert told.description == (
        "Rule 5710 fired 1,234 times on web-1 (001), from 2026-11-20 09:00:00 to 09:59:59 UTC."
    )
    assert (told.severity, told.title) == (Severity.MEDIUM, "Wazuh rule 5710")
    assert AlertTally.read({**bucket, "first": {"value": None}}) is None
    assert apply_tally(incident, group, None) == incident


def test_link_finds_the_alerts_of_the_group():
    group = AlertGroup("57'10\" or *", "001", "web-1", datetime(2026, 11, 20, 9, tzinfo=UTC))
    link = build_dashboard_url("https://wazuh.example.com", group, HOUR)
    assert link.startswith("https://wazuh.example.com/app/discover#/?_g=%28time%3A%28from%3A%27")
    assert "57%21%2710%5C%22%20or%20%2A" in link
    assert AlertGroup.parse(group.name) == group


@pytest.mark.parametrize("name", ["web-1", "rack/7", "100%", "a%2Fb/c", "-", "ü"])
def test_group_names_round_trip(name):
    group = AlertGroup("5710", "001", name, datetime(2026, 11, 20, 9, tzinfo=UTC))
    assert AlertGroup.parse(group.name) == group


@pytest.mark.parametrize("name", ["none", "a/b/c/yesterday", "a/b/2026-11-20T09:00:00+00:00", ""])
def test_invalid_group_names_are_rejected(name):
    assert AlertGroup.parse(name) is None


def test_alert_has_a_one_line_summary():
    event = build_event(hit(ALERT), Entity(EntityKind.USER, "ORACLE"))
    assert event is not None
    assert event.summary == (
        "sshd: Attempt to login using a non-existent user (rule 5710) on web-1"
    )
    assert event.fields["data.srcip"] == "203.0.113.7"
    assert (
        build_event(hit(ALERT), Entity(EntityKind.IP, "203.0.113.99")) is None
    )  # only in the text


def test_target_account_is_an_entity():
    document = FINDING | {"user": {"name": "oracle", "target": {"name": "ann"}}}
    found = named(build_incident([hit(document)], HOUR))
    assert {("user", "ann"), ("user", "oracle")} <= found


def test_event_has_the_entity_it_was_found_by():
    layouts = {"wazuh": {"rule": FINDING["wazuh"]["rule"]}}, {"rule": ALERT["rule"]}
    for layout in layouts:
        bare = {"@timestamp": ALERT["@timestamp"], **layout}
        for place, asked, document in everywhere(ENTITY_FIELDS, bare):
            event = build_event(hit(document), asked)
            assert event is not None, place
            assert contains_entity(asked, event.entities), place


@given(changes=st.dictionaries(st.sampled_from([*ALERT, *FINDING]), JSON, max_size=4))
def test_any_field_may_have_any_type(changes):
    for document in (ALERT, FINDING, changes):
        with contextlib.suppress(ValueError):  # a document may be rejected, and nothing else
            assert build_incident([hit(document, **changes)], HOUR).external_id
            build_event(hit(document, **changes), Entity(EntityKind.IP, "203.0.113.7"))
