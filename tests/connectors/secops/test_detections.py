"""Mapping of detections, and searches for entities."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.connectors.secops.udm_reader import Term, terms

from full_run import scale_examples
from tocsin import Entity, EntityKind, IncidentStatus, Severity
from tocsin_connectors.siem.secops import search
from tocsin_connectors.siem.secops.mapping import ENTITY_FIELDS, build_incident

LINK = "https://soc.backstory.chronicle.security/ruleDetections?ruleId=ru_7"
DNS = {
    "metadata": {"eventTimestamp": "2026-11-20T09:40:11.5Z", "eventType": "NETWORK_DNS"},
    "principal": {
        "hostname": "Laptop-7",
        "ip": ["10.1.2.3", "10.1.XX.XX"],
        "user": {"userid": "ann", "emailAddresses": ["ann@example.com"]},
    },
    "network": {"dns": {"questions": [{"name": "evil.example.com", "type": 1}]}},
}
PROCESS = {
    "target": {
        "process": {"file": {"sha256": "9f" * 32, "fullPath": "/tmp/x"}, "commandLine": "x -y"},
        "url": "https://evil.example.com/x",
        "resource": {"name": "projects/p/secrets/s"},
    },
    "extensions": {"vulns": {"vulnerabilities": [{"cveId": "CVE-2026-12345"}]}},
}
DETECTION: dict[str, Any] = {
    "type": "RULE_DETECTION",
    "id": "de_7",
    "createdTime": "2026-11-20T15:00:50.383774Z",
    "detectionTime": "2026-11-20T10:00:00Z",
    "timeWindow": {"startTime": "2026-11-20T09:00:00Z", "endTime": "2026-11-20T10:00:00Z"},
    "detection": [
        {
            "ruleName": "Beaconing",
            "urlBackToProduct": LINK,
            "alertState": "ALERTING",
            "ruleLabels": [
                {"key": "severity", "value": "Critical"},
                {"key": "mitre_attack_technique", "value": "T1071.004"},
                {"key": "author", "value": "T1 of T1000"},
                {"key": "mitre_attack_tactic", "value": "Command and Control"},
            ],
            "detectionFields": [{"key": "client_ip", "value": "10.1.2.3"}],
        }
    ],
    "collectionElements": [
        {"label": "dns", "references": [{"event": DNS}]},
        {"label": "run", "references": [{"event": PROCESS}]},
        {
            "label": "graph",
            "references": [{"entity": {"entity": {"hostname": "crown-jewel"}}}],
        },
    ],
}


def test_detection_maps_to_incident_as_in_the_console():
    incident = build_incident(DETECTION)
    assert (incident.external_id, incident.title) == ("de_7", "Beaconing")
    assert (incident.severity, incident.raw_severity) == (Severity.CRITICAL, "Critical")
    assert incident.status is IncidentStatus.NEW
    assert incident.occurred_at == datetime(2026, 11, 20, 9, 40, 11, 500_000, tzinfo=UTC)
    assert incident.changed_at == datetime(2026, 11, 20, 15, 0, 50, 383_774, tzinfo=UTC)
    assert incident.description == "client_ip: 10.1.2.3"
    assert incident.techniques == ("T1071.004",)
    assert incident.tactics == ("TA0011",)
    assert incident.source_url == LINK
    assert [alert.rule for alert in incident.alerts] == ["Beaconing"]


def test_rule_without_a_name_has_its_id():
    [alert] = build_incident(DETECTION | {"detection": [{"ruleId": "ru_7"}]}).alerts
    assert alert.rule == "ru_7"


def test_detection_has_entities_of_its_events():
    found = {(entity.kind.value, entity.value) for entity in build_incident(DETECTION).entities}
    assert found == {
        ("host", "laptop-7"),
        ("host", "crown-jewel"),
        ("ip", "10.1.2.3"),
        ("user", "ann"),
        ("email", "ann@example.com"),
        ("domain", "evil.example.com"),
        ("file_hash", "9f" * 32),
        ("process", "/tmp/x"),
        ("url", "https://evil.example.com/x"),
        ("cloud_resource", "projects/p/secrets/s"),
        ("cve", "CVE-2026-12345"),
    }


# https://cloud.google.com/chronicle/docs/reference/udm-field-list
def test_detection_of_any_shape_maps_as_a_whole():
    event = {
        "metadata": {"eventTimestamp": "2026-11-20T09:30:00Z"},
        "principal": {
            "process": {
                "commandLine": '"C:\\Tools\\run.exe" -x evil.example',
                "parentProcess": {"file": {"fullPath": "C:\\a.exe", "sha256": "9f" * 32}},
            }
        },
        "network": {
            "dns": {"answers": [{"data": "198.51.100.4", "type": 1}, {"data": "v=spf1"}]},
            "email": {"cc": ["bob@example.com"], "bcc": ["eve@example.com"]},
        },
        "securityResult": [{"about": [{"ip": ["203.0.113.9"]}], "summary": "see vendor.example"}],
    }
    rule = {
        "ruleLabels": [{"key": "rule_name", "value": "Odd run"}],
        "riskScore": 75,
        "detectionFields": [
            {"key": "src_ip", "value": "203.0.113.8"},
            {"key": "event_id", "value": "9f" * 16},
        ],
        "outcomes": [{"key": "hostnames", "value": "ws-1,ws-2"}, {"key": "count", "value": "7"}],
    }
    window = {"startTime": "2026-11-20T09:00:00Z", "endTime": "2026-11-20T10:00:00Z"}
    incident = build_incident(
        {
            "id": "de_9",
            "createdTime": "2026-11-20T15:00:50Z",
            "timeWindow": window,
            "detection": [rule],
            "collectionElements": [{"references": [{"event": event}]}],
        }
    )
    assert incident.title == "Odd run"
    assert (incident.severity, incident.raw_severity) == (Severity.HIGH, "75")
    assert not incident.severity_assumed
    assert incident.occurred_at == datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
    assert {(entity.kind.value, entity.value) for entity in incident.entities} == {
        *(("process", "C:\\Tools\\run.exe"), ("process", "C:\\a.exe"), ("file_hash", "9f" * 32)),
        *(("ip", "198.51.100.4"), ("ip", "203.0.113.9"), ("ip", "203.0.113.8")),
        *(("email", "bob@example.com"), ("email", "eve@example.com")),
        *(("host", "ws-1"), ("host", "ws-2")),
    }
    assert {entity.value for entity in incident.targets} == {"bob@example.com", "eve@example.com"}


@pytest.mark.parametrize(
    ("feedback", "severity", "status"),
    [
        ({"priority": "PRIORITY_LOW", "status": "CLOSED"}, Severity.LOW, IncidentStatus.CLOSED),
        ({"priority": "PRIORITY_INFO"}, Severity.INFORMATIONAL, IncidentStatus.NEW),
        ({"priority": "PRIORITY_UNSPECIFIED", "status": "REVIEWED"}, Severity.CRITICAL, "Active"),
        ({"status": "OPEN"}, Severity.CRITICAL, IncidentStatus.NEW),
    ],
)
def test_analyst_feedback_overrides_the_rule(feedback, severity, status):
    incident = build_incident(DETECTION | {"feedbackSummary": feedback})
    assert (incident.severity, incident.status) == (severity, status)


def test_feedback_changes_the_incident():
    later = {"feedbackSummary": {"createTime": "2026-11-21T08:00:00Z"}}
    assert build_incident(DETECTION | later).changed_at == datetime(2026, 11, 21, 8, tzinfo=UTC)


@pytest.mark.parametrize("member", ["id", "createdTime"])
def test_detection_without_id_is_rejected(member):
    with pytest.raises(ValueError, match=f"{member} is missing"):
        build_incident({key: item for key, item in DETECTION.items() if key != member})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["references", "event", "principal", "ip", "ruleLabels", "key"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(sorted(DETECTION)), JSON))
@settings(max_examples=scale_examples(50))
def test_any_detection_is_parsed_or_rejected(members):
    try:
        incident = build_incident(DETECTION | members)
    except ValueError:
        return
    assert incident.external_id
    assert all(entity.value for entity in incident.entities)


PRINTABLE = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1)


@given(
    st.sampled_from(sorted(set(ENTITY_FIELDS) - {EntityKind.IP})),
    PRINTABLE | st.just('\\" OR ip = "'),
)
def test_values_are_quoted_in_each_search_term(kind, value):
    entity = Entity(kind, value)
    expected = [
        Term(search.spell_field(field), entity.value, nocase=True) for field in ENTITY_FIELDS[kind]
    ]
    assert terms(search.build_query(entity)) == expected


def test_fields_use_search_spelling():
    assert search.spell_field("about.user.emailAddresses") == "about.user.email_addresses"
    assert search.spell_field("target.process.file.fullPath") == "target.process.file.full_path"
    assert search.spell_field("principal.file.sha256") == "principal.file.sha256"
