"""Mapping of Defender XDR incidents."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin import Entity, EntityKind, Incident, IncidentStatus, Severity
from tocsin_connectors.siem.defender.mapping import build_incident

ALERT = {
    "id": "da6375_1",
    "title": "Suspicious file",
    "detectorId": "e0da400f-affd-43ef-b1d5-afc2eb6f2756",
    "severity": "low",
    "category": "DefenseEvasion",
    "mitreTechniques": ["T1564.001", "later"],
    "createdDateTime": "2026-11-20T09:20:00Z",
    "firstActivityDateTime": "2026-11-20T09:00:00.1234567Z",
    "evidence": [
        {"@odata.type": "#microsoft.graph.security.ipEvidence", "ipAddress": "203.0.113.7"}
    ],
}
RECORD = {
    "id": "2972395",
    "incidentWebUrl": "https://security.microsoft.com/incidents/2972395?tid=8f2c",
    "redirectIncidentId": None,
    "displayName": "Multi-stage incident",
    "description": "Several endpoints",
    "createdDateTime": "2026-11-20T09:30:00.5533333Z",
    "lastUpdateDateTime": "2026-11-20T10:00:00.1133333Z",
    "classification": "unknown",
    "determination": "unknown",
    "status": "inProgress",
    "severity": "Medium",
    "alerts": [ALERT],
}


def incident(**changes: object) -> Incident:
    return build_incident(RECORD | changes)


def test_incident_has_the_fields_of_its_record():
    found = incident()
    assert (found.external_id, found.external_number) == ("2972395", "2972395")
    assert (found.title, found.description) == ("Multi-stage incident", "Several endpoints")
    assert (found.severity, found.raw_severity) == (Severity.MEDIUM, "Medium")
    assert not found.severity_assumed
    assert (found.status, found.raw_status) == (IncidentStatus.ACTIVE, "inProgress")
    assert found.changed_at == datetime(2026, 11, 20, 10, 0, 0, 113333, tzinfo=UTC)
    assert found.occurred_at == datetime(2026, 11, 20, 9, 0, 0, 123456, tzinfo=UTC)
    assert found.source_url == RECORD["incidentWebUrl"]
    assert found.techniques == ("T1564.001",)
    assert found.tactics == ("TA0005",)
    assert found.entities == (Entity(EntityKind.IP, "203.0.113.7"),)
    [alert] = found.alerts
    assert (alert.external_id, alert.title, alert.severity) == (
        "da6375_1",
        "Suspicious file",
        Severity.LOW,
    )
    assert alert.rule == ALERT["detectorId"]


def test_policy_of_an_alert_is_its_rule():
    [alert] = incident(alerts=[{**ALERT, "alertPolicyId": "policy-7"}]).alerts
    assert alert.rule == "policy-7"


@pytest.mark.parametrize(
    ("word", "status"),
    [
        ("active", IncidentStatus.NEW),
        ("Active", IncidentStatus.NEW),
        ("awaitingAction", IncidentStatus.ACTIVE),
        ("resolved", IncidentStatus.CLOSED),
        ("redirected", IncidentStatus.CLOSED),
        ("unknownFutureValue", IncidentStatus.NEW),
    ],
)
def test_graph_statuses_are_mapped(word, status):
    assert incident(status=word).status is status


def test_merged_incident_names_its_target():
    assert incident(status="redirected", redirectIncidentId="39").merged_into == "39"


def test_classification_is_in_the_description():
    decided = incident(classification="truePositive", determination="multiStagedAttack")
    assert decided.description.endswith("\nClassified as truePositive, multiStagedAttack")


def test_incident_without_alerts_uses_creation_time():
    made = datetime(2026, 11, 20, 9, 30, 0, 553333, tzinfo=UTC)
    assert incident(alerts=[]).occurred_at == made
    never = {**ALERT, "firstActivityDateTime": "0001-01-01T00:00:00Z"}
    assert incident(alerts=[never]).occurred_at == made


def test_invalid_alert_does_not_affect_others():
    odd = {**ALERT, "id": 7, "firstActivityDateTime": "noon", "createdDateTime": None}
    assert len(incident(alerts=[odd, ALERT]).alerts) == 1


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"id": None}, "id is missing"),
        ({"lastUpdateDateTime": None}, "lastUpdateDateTime is missing"),
        ({"lastUpdateDateTime": 7}, "of the wrong type: 7"),
        ({"lastUpdateDateTime": "noon"}, "ISO 8601"),
    ],
)
def test_incident_without_id_is_rejected_with_reason(changes, reason):
    with pytest.raises(ValueError, match=reason):
        incident(**changes)


@given(
    changes=st.dictionaries(
        st.sampled_from(sorted(RECORD)),
        st.none()
        | st.integers()
        | st.text()
        | st.lists(st.text())
        | st.dictionaries(st.text(), st.text()),
    )
)
def test_any_member_may_have_any_type(changes):
    with contextlib.suppress(ValueError):
        assert incident(**changes).title
    with contextlib.suppress(ValueError):
        incident(alerts=[{**ALERT, **changes}])
