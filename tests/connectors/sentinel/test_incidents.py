"""Mapping of Sentinel incidents."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin import EntityKind, Incident, IncidentStatus, Severity
from tocsin_connectors.siem.sentinel.mapping import (
    build_alerts,
    build_incident,
    find_alert_entities,
    find_techniques,
)

PORTAL, TENANT = "https://security.microsoft.com", "8f2c0d34-5f0e-4f0b-9c39-0d6f6a2e1b11"
TOLD = {
    "title": "Password spray",
    "description": "Many accounts, one address",
    "severity": "High",
    "status": "Active",
    "incidentNumber": 3177,
    "providerName": "Azure Sentinel",
    "providerIncidentId": "3177",
    "createdTimeUtc": "2026-11-20T09:30:00.1234567Z",
    "firstActivityTimeUtc": "2026-11-20T09:00:00Z",
    "lastModifiedTimeUtc": "2026-11-20T10:00:00.1234567Z",
    "incidentUrl": "https://portal.azure.com/#asset/x",
    "additionalData": {"techniques": ["T1110.003", "none"], "tactics": ["CredentialAccess"]},
}
ALERT = {
    "name": "a1",
    "properties": {
        "systemAlertId": "a1",
        "alertDisplayName": "Sign-ins that failed",
        "severity": "Low",
        "startTimeUtc": "2026-11-20T09:00:00Z",
        "techniques": ["T1110"],
        "alertType": "8ecf8077-cf51-4820-aadd-14040956f35d_fab3d2d4-747f-46a7-8ef0-9c0be8112bf7",
        "additionalData": {
            "Analytic Rule Name": "Many failed sign-ins",
            "Entities": '[{"Address": "203.0.113.7", "Type": "ip"}]',
        },
    },
}


def incident(**changes: object) -> Incident:
    record = {"name": "73e01a99-0000-4000-8000-9f2736ff2ab5", "properties": TOLD | changes}
    return build_incident(record, PORTAL, TENANT)


def test_incident_has_the_fields_of_its_record():
    found = incident()
    assert found.external_id == "73e01a99-0000-4000-8000-9f2736ff2ab5"
    assert (found.external_number, found.title) == ("3177", "Password spray")
    assert (found.severity, found.raw_severity) == (Severity.HIGH, "High")
    assert (found.status, found.raw_status) == (IncidentStatus.ACTIVE, "Active")
    assert found.occurred_at == datetime(2026, 11, 20, 9, tzinfo=UTC)
    assert found.changed_at == datetime(2026, 11, 20, 10, 0, 0, 123456, tzinfo=UTC)
    assert found.source_url == "https://portal.azure.com/#asset/x"
    assert found.techniques == ("T1110.003",)
    assert found.tactics == ("TA0006",)
    assert found.description == "Many accounts, one address"


def test_closed_incident_has_its_reason():
    closed = incident(
        status="Closed",
        classification="FalsePositive",
        classificationReason="IncorrectAlertLogic",
        classificationComment="Our own scanner",
    )
    assert closed.description.endswith(
        "\nClosed as FalsePositive (IncorrectAlertLogic): Our own scanner"
    )


def test_defender_incident_has_defender_number_and_link():
    found = incident(providerName="Microsoft XDR", providerIncidentId="39")
    assert found.external_number == "39"
    assert found.source_url == f"{PORTAL}/incident2/39/overview?tid={TENANT}"
    given = {"providerIncidentUrl": "https://security.microsoft.com/incidents/39"}
    told = incident(providerName="Microsoft XDR", providerIncidentId="39", additionalData=given)
    assert told.source_url == given["providerIncidentUrl"]


def test_link_without_defender_portal_is_azure():
    record = {"name": "x", "properties": TOLD | {"providerName": "Microsoft XDR"}}
    assert build_incident(record, None, TENANT).source_url == "https://portal.azure.com/#asset/x"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://portal.azure.com/#asset/x/incidents/0c6d%2Fe", "0c6d/e"),
        ("https://security.microsoft.com/incident2/39/overview", None),
        ("", None),
        (None, None),
    ],
)
def test_merged_incident_names_its_target(url, expected):
    assert incident(additionalData={"mergedIncidentUrl": url}).merged_into == expected


def test_unset_time_is_none():
    found = incident(firstActivityTimeUtc="0001-01-01T00:00:00Z")
    assert found.occurred_at == datetime(2026, 11, 20, 9, 30, 0, 123456, tzinfo=UTC)


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"properties": TOLD}, "name is missing"),
        ({"name": "x"}, "lastModifiedTimeUtc is missing"),
        ({"name": "x", "properties": TOLD | {"lastModifiedTimeUtc": "noon"}}, "ISO 8601"),
        ({"name": "x", "properties": TOLD | {"lastModifiedTimeUtc": 7}}, "of the wrong type: 7"),
    ],
)
def test_incident_without_id_is_rejected_with_reason(record, reason):
    with pytest.raises(ValueError, match=reason):
        build_incident(record, PORTAL, TENANT)


def test_alerts_have_their_own_severity():
    [alert] = build_alerts([ALERT])
    assert (alert.external_id, alert.title) == ("a1", "Sign-ins that failed")
    assert (alert.severity, alert.rule) == (Severity.LOW, "Many failed sign-ins")
    assert alert.occurred_at == datetime(2026, 11, 20, 9, tzinfo=UTC)


def test_invalid_alert_does_not_affect_others():
    assert len(list(build_alerts([{}, {"name": "x", "properties": {}}, ALERT]))) == 1


def test_alert_of_another_product_has_no_rule():
    properties = ALERT["properties"] | {"alertType": "WindowsDefenderAtp", "additionalData": {}}
    [alert] = build_alerts([{"name": "a1", "properties": properties}])
    assert alert.rule is None


def test_alerts_have_techniques_and_entities():
    assert list(find_techniques([ALERT])) == ["T1110"]
    assert [(entity.kind, entity.value) for entity in find_alert_entities([ALERT])] == [
        (EntityKind.IP, "203.0.113.7")
    ]


@given(
    changes=st.dictionaries(
        st.sampled_from(sorted(TOLD)),
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
    list(build_alerts([{"name": "x", "properties": changes}]))
