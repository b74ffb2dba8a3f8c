"""Mapping of Security Analytics alerts and findings."""

from __future__ import annotations

import contextlib
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.connectors.indices.asking import everywhere
from tests.connectors.wazuh.test_alerts import JSON

from tocsin import Entity, EntityKind, Incident, IncidentStatus, Severity, Window
from tocsin_connectors.siem.opensearch.events import ENTITY_FIELDS, build_event
from tocsin_connectors.siem.opensearch.mapping import (
    AlertReference,
    attach_findings,
    build_incident,
    has_changed_in,
    list_finding_ids,
)
from tocsin_connectors.siem.records import contains_entity

ALERT = {
    "detector_id": "another",
    "id": "alert-7",
    "trigger_name": "Sign-ins that failed",
    "finding_ids": ["finding-1", "finding-2"],
    "related_doc_ids": ["1|windows"],
    "state": "ACTIVE",
    "error_message": None,
    "severity": "2",
    "start_time": "2026-11-20T09:19:51.250123Z",
    "last_notification_time": "2026-11-20T09:19:51.250456Z",
    "end_time": None,
    "acknowledged_time": None,
}
DOCUMENT = {
    "winlog": {"event_data": {"TargetUserName": "ann"}, "computer_name": "dc.example.com"},
    "source.ip": "203.0.113.7",
    "source": {"port": 52044},
}
FINDING = {
    "id": "finding-1",
    "queries": [{"name": "rule-a", "tags": ["low", "attack.t1110"]}, {"tags": ["critical"]}],
    "timestamp": 1_795_166_391_250,
    "document_list": [
        {"id": "1", "found": True, "document": json.dumps(DOCUMENT)},
        {"id": "2", "found": False, "document": "{ no JSON"},
    ],
}


def read(**changes: Any) -> Incident:
    return build_incident({**ALERT, **changes}, "detector-1", "Windows logs")


def test_alert_becomes_incident():
    incident = read()
    assert incident.external_id == "alert-7@detector-1@1795166391250"
    assert (incident.external_number, incident.title) == ("alert-7", "Sign-ins that failed")
    assert (incident.severity, incident.raw_severity) == (Severity.HIGH, "2")
    assert incident.occurred_at == datetime(2026, 11, 20, 9, 19, 51, 250_123, UTC)
    assert incident.changed_at == datetime(2026, 11, 20, 9, 19, 51, 250_456, UTC)
    assert incident.description == "Detector: Windows logs"
    assert AlertReference.parse(incident.external_id) == (
        "alert-7",
        "detector-1",
        1_795_166_391_250,
    )
    assert AlertReference.parse("alert-7") is None


@pytest.mark.parametrize(
    ("severity", "found", "assumed"),
    [
        *(("1", Severity.CRITICAL, False), ("3", Severity.MEDIUM, False)),
        *(("4", Severity.LOW, False), (5, Severity.INFORMATIONAL, False)),
        *((None, Severity.MEDIUM, True), ("6", Severity.MEDIUM, True)),
    ],
)
def test_trigger_level_is_the_severity(severity, found, assumed):
    incident = read(severity=severity)
    assert (incident.severity, incident.severity_assumed) == (found, assumed)


@pytest.mark.parametrize(
    ("state", "status"),
    [
        *(("ACTIVE", IncidentStatus.NEW), ("ERROR", IncidentStatus.NEW)),
        *(("acknowledged", IncidentStatus.ACTIVE), ("COMPLETED", IncidentStatus.CLOSED)),
        *(("DELETED", IncidentStatus.CLOSED), ("AUDIT", IncidentStatus.NEW)),
    ],
)
def test_state_is_mapped_to_status(state, status):
    incident = read(state=state)
    assert (incident.status, incident.raw_status) == (status, state)


def test_acknowledgement_and_end_are_changes():
    day = Window(datetime(2026, 11, 20, tzinfo=UTC), datetime(2026, 11, 21, tzinfo=UTC))
    assert not has_changed_in(ALERT, day)
    acknowledged = {**ALERT, "acknowledged_time": 1_795_170_000_000}
    assert has_changed_in(acknowledged, day)
    assert not has_changed_in(acknowledged, Window(day.end, day.end + timedelta(days=1)))
    assert not has_changed_in({**acknowledged, "start_time": None}, day)
    assert read(**acknowledged).changed_at == datetime(2026, 11, 20, 10, 20, tzinfo=UTC)


def test_alert_has_the_details_of_its_findings():
    incident = attach_findings(read(), [FINDING, {"id": 7}])
    assert {(entity.kind.value, entity.value) for entity in incident.entities} == {
        *(("user", "ann"), ("host", "dc.example.com"), ("ip", "203.0.113.7")),
    }
    assert incident.techniques == ("T1110",)
    [alert] = incident.alerts
    assert (alert.external_id, alert.title, alert.severity) == (
        *("finding-1", "rule-a", Severity.CRITICAL),
    )
    assert incident.severity is Severity.HIGH


@pytest.mark.parametrize(
    ("queries", "rule"),
    [
        ([{"id": "QdZN040B", "name": "QdZN040B"}], "QdZN040B"),
        ([{"name": "rule-a"}, {"name": "rule-b"}], None),
        ([{"name": "rule-a"}, {}], None),
        ([], None),
    ],
)
def test_finding_of_one_rule_names_it(queries, rule):
    [alert] = attach_findings(read(), [FINDING | {"queries": queries}]).alerts
    assert alert.rule == rule


def test_alert_without_level_uses_levels_of_matched_rules():
    incident = attach_findings(read(severity=None), [FINDING])
    assert (incident.severity, incident.severity_assumed) == (Severity.CRITICAL, False)
    assert attach_findings(read(severity=None), []).severity_assumed


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"id": None}, "id is missing"),
        ({"start_time": None}, "start_time is not a time: None"),
        ({"start_time": "2026-11-20T09:19:51"}, "start_time is not a time"),
    ],
)
def test_missing_required_fields_are_rejected(changes, reason):
    with pytest.raises(ValueError, match=reason):
        read(**changes)


def test_document_has_a_one_line_summary():
    document = {**DOCUMENT, "@timestamp": "2026-11-20T09:19:51Z", "message": "two\nlines"}
    ann = Entity(EntityKind.USER, "Ann")
    event = build_event({"_id": "1", "_source": document}, "@timestamp", ann)
    assert event is not None
    assert (event.external_id, event.summary) == ("1", "two lines")
    told = build_event({"_id": "1", "_source": {**document, "message": None}}, "@timestamp", ann)
    assert told is not None
    assert "TargetUserName" in told.summary


@given(changes=st.dictionaries(st.sampled_from([*ALERT, *FINDING]), JSON, max_size=5))
def test_any_field_may_have_any_type(changes):
    with contextlib.suppress(ValueError):  # an alert may be rejected, and nothing else
        incident = build_incident({**ALERT, **changes}, "detector-1", None)
        assert attach_findings(incident, [{**FINDING, **changes}]).external_id
        assert all(list_finding_ids({**ALERT, **changes}))


def test_ids_references_and_texts_in_a_document_are_not_entities():
    document = json.dumps(
        {
            "eventID": "9f86d081884c7d659a2feaa0c55ad015",
            "eventSource": "iam.vendor.example",
            "userIdentity": {"userName": "ann", "arn": "arn:aws:iam::111122223333:user/ann"},
            "sourceIPAddress": "203.0.113.7",
            "userAgent": "console.vendor.example",
            "message": "T1059 seen by bob@vendor.example at https://vendor.example/x",
            "threat": {"technique": {"id": ["T1078"]}, "tactic": {"id": ["TA0001"]}},
        }
    )
    queries = [{"tags": ["attack.credential_access", "high"]}]
    finding = {**FINDING, "queries": queries, "document_list": [{"document": document}]}
    found = attach_findings(read(), [finding])
    assert set(found.entities) == {
        Entity(EntityKind.USER, "ann"),
        Entity(EntityKind.CLOUD_RESOURCE, "arn:aws:iam::111122223333:user/ann"),
        Entity(EntityKind.IP, "203.0.113.7"),
    }
    assert found.techniques == ("T1078",)
    assert found.tactics == ("TA0006", "TA0001")


def test_target_account_is_an_entity():
    document = json.dumps({"user.target": {"name": "ann"}, "related": {"hosts": ["dc", "-"]}})
    finding = {**FINDING, "document_list": [{"document": document}]}
    found = attach_findings(read(), [finding]).entities
    assert set(found) == {Entity(EntityKind.USER, "ann"), Entity(EntityKind.HOST, "dc")}


def test_event_has_the_entity_it_was_found_by():
    bare = {"@timestamp": "2026-11-20T09:19:51Z"}
    for place, asked, document in everywhere(ENTITY_FIELDS, bare):
        event = build_event({"_id": "1", "_source": document}, "@timestamp", asked)
        assert event is not None, place
        assert contains_entity(asked, event.entities), place
