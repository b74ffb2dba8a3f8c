"""Mapping of documents in the Elastic Common Schema."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.connectors.json_values import JSON

from tocsin import Alert, Entity, EntityKind, Incident, IncidentStatus, NetworkFlow, Severity
from tocsin_connectors.siem.ecs import Ecs, tocsin_providers
from tocsin_connectors.siem.ecs.mapping import build_event, build_incident

CLIENT, SERVER = Entity(EntityKind.IP, "203.0.113.9"), Entity(EntityKind.IP, "192.0.2.80")
AT = datetime(2026, 11, 20, 12, 34, 56, 789000, UTC)


def alert(**changes: Any) -> dict[str, Any]:
    """An alert of Suricata, as Filebeat writes it; `None` leaves a member out."""
    members = {
        "@timestamp": "2026-11-20T12:34:56.789Z",
        "agent": {"name": "sensor-1", "type": "filebeat"},
        "event": {
            "kind": "alert",
            "module": "suricata",
            "dataset": "suricata.eve",
            "category": ["network", "intrusion_detection"],
            "severity": 1,
        },
        "rule": {
            "id": "9000001",
            "name": "LOCAL Path traversal in shop",
            "category": "Web Application Attack",
        },
        "threat": {
            "tactic": {"id": ["TA0001"], "name": ["Initial Access"]},
            "technique": {"id": ["T1190"], "name": ["Exploit Public-Facing Application"]},
        },
        "message": "Web Application Attack",
        "source": {"ip": CLIENT.value, "port": 40000},
        "destination": {"ip": SERVER.value, "port": 80},
        "url": {"domain": "shop.example", "original": "/a?b=c"},
        "host": {"name": "sensor-1"},
    } | changes
    return {name: value for name, value in members.items() if value is not None}


def signal(**changes: Any) -> dict[str, Any]:
    """An alert of Elastic Security, as an export writes it: with dotted names, in `_source`."""
    source = {
        "@timestamp": "2026-11-20T12:34:56.789Z",
        "event.kind": "signal",
        "kibana.alert.uuid": "5d1f",
        "kibana.alert.rule.name": "Credential dumping",
        "kibana.alert.reason": "process event with mimikatz.exe on pc-1",
        "kibana.alert.severity": "critical",
        "kibana.alert.workflow_status": "acknowledged",
        "kibana.alert.workflow_status_updated_at": "2026-11-20T13:00:00.000Z",
        "kibana.alert.original_time": "2026-11-20T12:30:00.000Z",
        "kibana.alert.url": "https://kibana.example.org/app/security/alerts/redirect/5d1f",
        "kibana.alert.rule.parameters": {
            "threat": [
                {
                    "tactic": {"id": "TA0006"},
                    "technique": [{"id": "T1003", "subtechnique": [{"id": "T1003.001"}]}],
                }
            ]
        },
        "host": {"name": "pc-1"},
        "user": {"name": "ann"},
        "process": {"executable": "C:\\tools\\mimikatz.exe", "pid": 7},
    } | changes
    return {"_index": ".alerts-security.alerts-default", "_id": "5d1f", "_source": source}


@pytest.fixture
def provider(make_feed, tmp_path):
    return make_feed(tmp_path / "alerts.ndjson", Ecs).provider


def test_plugin_hook_returns_the_provider():
    assert tocsin_providers() is Ecs


def test_alert_of_a_sensor_becomes_incident(provider):
    incident = provider.to_incident(alert())
    site = Entity(EntityKind.DOMAIN, "shop.example")
    assert incident == Incident(
        external_id="9000001/203.0.113.9/2026-11-20T12:00:00+00:00",
        title="LOCAL Path traversal in shop",
        description="Web Application Attack",
        severity=Severity.HIGH,
        raw_severity="1",
        occurred_at=AT,
        techniques=("T1190",),
        tactics=("TA0001",),
        entities=(CLIENT, SERVER, site, Entity(EntityKind.HOST, "sensor-1")),
        sources=(CLIENT,),
        targets=(SERVER,),
        alerts=(
            Alert(
                external_id=incident.alerts[0].external_id,
                title="LOCAL Path traversal in shop",
                severity=Severity.HIGH,
                occurred_at=AT,
                rule="LOCAL Path traversal in shop",
                flow=NetworkFlow(
                    source=CLIENT.value, source_port=40_000, target=SERVER.value, target_port=80
                ),
            ),
        ),
    )


def test_alert_of_elastic_security_becomes_incident(provider):
    incident = provider.to_incident(signal())
    pc = Entity(EntityKind.HOST, "pc-1")
    assert incident == Incident(
        external_id="5d1f",
        title="Credential dumping",
        description="process event with mimikatz.exe on pc-1",
        severity=Severity.CRITICAL,
        raw_severity="critical",
        status=IncidentStatus.ACTIVE,
        raw_status="acknowledged",
        occurred_at=datetime(2026, 11, 20, 12, 30, tzinfo=UTC),
        changed_at=datetime(2026, 11, 20, 13, tzinfo=UTC),
        source_url="https://kibana.example.org/app/security/alerts/redirect/5d1f",
        techniques=("T1003", "T1003.001"),
        tactics=("TA0006",),
        entities=(
            *(pc, Entity(EntityKind.USER, "ann")),
            Entity(EntityKind.FILE, "C:\\tools\\mimikatz.exe"),
            Entity(EntityKind.PROCESS, "mimikatz.exe"),
        ),
        sources=(pc,),
        alerts=(
            Alert(
                external_id="5d1f",
                title="Credential dumping",
                severity=Severity.CRITICAL,
                occurred_at=datetime(2026, 11, 20, 12, 30, tzinfo=UTC),
                rule="Credential dumping",
            ),
        ),
    )


@pytest.mark.parametrize(
    ("members", "rule"),
    [({"id": "9000001"}, "9000001"), ({"description": "Unnamed"}, None), (None, None)],
)
def test_rule_without_a_name(provider, members, rule):
    [found] = provider.to_incident(alert(rule=members)).alerts
    assert found.rule == rule


@pytest.mark.parametrize(
    ("changes", "severity", "assumed"),
    [
        ({"event": {"kind": "alert", "risk_score": 99}}, Severity.CRITICAL, False),
        ({"event": {"kind": "alert", "risk_score": 47.5}}, Severity.MEDIUM, False),
        ({"event": {"kind": "alert", "risk_score": 0}}, Severity.LOW, False),
        ({"event": {"kind": "alert", "module": "suricata", "severity": 3}}, Severity.LOW, False),
        ({"event": {"kind": "alert", "module": "endpoint", "severity": 73}}, Severity.HIGH, False),
        ({"event": {"kind": "alert", "module": "other", "severity": 1}}, Severity.MEDIUM, True),
        ({"event": {"kind": "alert"}}, Severity.MEDIUM, True),
    ],
)
def test_severities(provider, changes, severity, assumed):
    incident = provider.to_incident(alert(**changes))
    assert (incident.severity, incident.severity_assumed) == (severity, assumed)


@pytest.mark.parametrize("kind", ["event", "state", "metric", None])
def test_other_documents_are_no_incidents(provider, kind):
    assert provider.to_incident(alert(event={"kind": kind})) is None


@pytest.mark.parametrize("moment", [None, 7, "yesterday", "2026-11-20T12:34:56"])
def test_document_without_a_time_is_rejected(provider, moment):
    for kind in ("alert", "event"):
        with pytest.raises(ValueError, match=r"time|@timestamp is"):
            provider.to_incident(alert(**{"@timestamp": moment, "event": {"kind": kind}}))


def test_alerts_of_one_rule_source_and_hour_are_one_incident(provider):
    records = [alert(), alert(**{"@timestamp": "2026-11-20T12:00:01Z"})]
    (folded,) = provider.fold([provider.to_incident(record) for record in records])
    assert len(folded.alerts) == 2


def test_versions_of_one_page_stay_apart(provider):
    records = [signal(), signal(**{"kibana.alert.workflow_status": "closed"})]
    versions = provider.fold([provider.to_incident(record) for record in records])
    assert [version.raw_status for version in versions] == ["acknowledged", "closed"]


def test_events_have_relations_and_fields(provider):
    record = alert(event={"kind": "event", "dataset": "zeek.connection"}, rule=None)
    event = provider.to_event(record)
    assert event.summary == "zeek.connection: Web Application Attack"
    assert [(one.source, one.type, one.target) for one in event.relations] == [
        (CLIENT, "connected-to", SERVER)
    ]
    assert event.fields["source.port"] == "40000"


@settings(max_examples=30)
@given(record=st.fixed_dictionaries({}, optional=dict.fromkeys([*alert(), "kibana"], JSON)))
def test_any_document_is_mapped_or_refused(record):
    for document in (record, record | {"@timestamp": "2026-11-20T12:34:56Z"}):
        with contextlib.suppress(ValueError):
            build_incident(document, timedelta(hours=1))
        with contextlib.suppress(ValueError):
            build_event(document)
