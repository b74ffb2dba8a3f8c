"""Mapping of Elastic alerts."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.connectors.json_values import JSON

from tocsin import Entity, EntityKind, IncidentStatus, Severity
from tocsin.testing import make_settings
from tocsin_connectors.siem.elastic import Elastic
from tocsin_connectors.siem.elastic.mapping import build_alert_incident

SETTINGS = make_settings(
    Elastic,
    url="https://elasticsearch.example.com:9200",
    kibana_url="https://kibana.example.com:5601",
    api_key="x",
    space="soc",
)
NAME = "4f0b2c1d9e8a7b6c5d4e3f2a1b0c9d8e7f6a5b4c3d2e1f0a9b8c7d6e5f4a3b2c"


def source(**changes):
    """Return an alert as Kibana stores it: flat names of its own beside what it has copied."""
    document = {
        "@timestamp": "2026-11-20T09:05:31.207Z",
        "event": {"kind": "signal", "category": ["authentication"]},
        "host": {
            "name": "web-1",
            "hostname": "WEB-1.example.com",
            "ip": ["10.0.0.9", "127.0.0.1", "fe80::1", "2001:db8::9"],
        },
        "source": {"ip": "203.0.113.7", "port": 50122},
        "user": {"name": "ann", "email": "ann@example.com"},
        "process.hash.sha256": "a" * 64,
        "process": {"executable": "/usr/sbin/sshd", "hash": {"md5": "b" * 32}},
        "dns.question.name": "evil.example.net",
        "related": {"hosts": ["web-1", "10.0.0.9"], "user": ["ann", "root"]},
        "kibana.alert.original_time": "2026-11-20T08:59:58.1234567Z",
        "kibana.alert.reason": "authentication event by ann on web-1",
        "kibana.alert.risk_score": 73,
        "kibana.alert.rule.description": "Many failed sign-ins, then one that succeeds.",
        "kibana.alert.rule.name": "Password Guessing",
        "kibana.alert.rule.threat": [
            {
                "framework": "MITRE ATT&CK",
                "tactic": {"id": "TA0006", "name": "Credential Access"},
                "technique": [{"id": "T1110", "subtechnique": [{"id": "T1110.001"}]}],
            },
            {"technique": [{"id": "T1078"}]},
        ],
        "kibana.alert.severity": "high",
        "kibana.alert.status": "active",
        "kibana.alert.uuid": NAME,
        "kibana.alert.workflow_status": "acknowledged",
        "kibana.alert.workflow_status_updated_at": "2026-11-20T10:00:00.000Z",
        "kibana": {"alert": {"workflow_status": "open", "depth": 1}},
    }
    return {**document, **changes}


def hit(**changes):
    index = ".internal.alerts-security.alerts-soc-000003"
    return {"_index": index, "_id": NAME, "_source": source(**changes)}


def incident(**changes):
    return build_alert_incident(hit(**changes), SETTINGS)


def test_alert_becomes_incident():
    found = incident()
    assert found.external_id == NAME
    assert found.title == "Password Guessing"
    assert found.description.splitlines() == [
        "authentication event by ann on web-1",
        "Many failed sign-ins, then one that succeeds.",
    ]
    assert (found.severity, found.raw_severity) == (Severity.HIGH, "high")
    assert found.tactics == ("TA0006",)
    assert (found.status, found.raw_status) == (IncidentStatus.ACTIVE, "acknowledged")
    assert found.occurred_at == datetime(2026, 11, 20, 8, 59, 58, 123_456, tzinfo=UTC)
    assert found.changed_at == datetime(2026, 11, 20, 10, tzinfo=UTC)
    [alert] = found.alerts
    assert (alert.external_id, alert.severity) == (NAME, Severity.HIGH)
    assert alert.rule == "Password Guessing"


def test_techniques_are_the_most_specific_of_the_rule():
    assert set(incident().techniques) == {"T1110.001", "T1078"}


def test_entities_come_from_nested_and_dotted_fields():
    assert set(incident().entities) == {
        Entity(EntityKind.IP, "203.0.113.7"),
        Entity(EntityKind.IP, "10.0.0.9"),
        Entity(EntityKind.IP, "2001:db8::9"),
        Entity(EntityKind.HOST, "web-1"),
        Entity(EntityKind.HOST, "web-1.example.com"),
        Entity(EntityKind.USER, "ann"),
        Entity(EntityKind.USER, "root"),
        Entity(EntityKind.EMAIL, "ann@example.com"),
        Entity(EntityKind.FILE_HASH, "a" * 64),
        Entity(EntityKind.FILE_HASH, "b" * 32),
        Entity(EntityKind.PROCESS, "/usr/sbin/sshd"),
        Entity(EntityKind.DOMAIN, "evil.example.net"),
    }


def test_new_alert_uses_creation_time_as_change_time():
    found = incident(**{"kibana.alert.workflow_status_updated_at": None})
    assert found.changed_at == datetime(2026, 11, 20, 9, 5, 31, 207_000, tzinfo=UTC)


@pytest.mark.parametrize(
    ("missing", "when"),
    [
        (["kibana.alert.original_time"], "2026-11-20T09:05:31.207000+00:00"),
        ([], "2026-11-20T08:59:58.123456+00:00"),
    ],
)
def test_occurrence_is_the_time_of_the_event_or_the_alert(missing, when):
    assert incident(**dict.fromkeys(missing)).occurred_at.isoformat() == when


def test_link_is_from_kibana_or_built():
    assert incident().source_url == (
        f"https://kibana.example.com:5601/s/soc/app/security/alerts/redirect/{NAME}"
        "?index=.alerts-security.alerts-soc&timestamp=2026-11-20T09%3A05%3A31.207Z"
    )
    own = "https://kibana.example.org/app/security/alerts/redirect/1"
    assert incident(**{"kibana.alert.url": own}).source_url == own


@pytest.mark.parametrize(
    ("word", "meant"),
    [("open", "New"), ("in-progress", "Active"), ("Closed", "Closed"), ("snoozed", "New")],
)
def test_statuses_of_all_versions_are_mapped(word, meant):
    assert incident(**{"kibana.alert.workflow_status": word}).status == IncidentStatus(meant)


def test_invalid_alert_is_rejected_with_reason():
    with pytest.raises(ValueError, match="_id is missing"):
        build_alert_incident({"_source": source()}, SETTINGS)
    with pytest.raises(ValueError, match="@timestamp is missing"):
        incident(**{"@timestamp": None})
    with pytest.raises(ValueError, match="has no time zone"):
        incident(**{"@timestamp": "2026-11-20T09:05:31"})


@given(st.dictionaries(st.sampled_from(sorted(source())), JSON, max_size=6))
def test_any_field_may_have_any_type(changes):
    with contextlib.suppress(ValueError):  # an alert may be put aside, and nothing else
        assert incident(**changes).title
