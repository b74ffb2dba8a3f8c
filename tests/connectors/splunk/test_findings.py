"""Mapping of findings."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.connectors.json_values import JSON

from tocsin import Entity, EntityKind, IncidentStatus, Severity
from tocsin_connectors.siem.splunk.mapping import build_incident, parse_id_time, select_stable

WEB = "https://splunk.example.com:8000"
GUID = "0B5E2C7A-5B4E-4B62-9F0D-7F2C1D9E8A11"
NAME = f"{GUID}@@notable@@9b74c9897bac770ffc029102a200c5de"


def finding(**changes):
    record = {
        "_bkt": f"notable~12~{GUID}",
        "_cd": "12:3456",
        "_indextime": "1795165264",
        "_serial": "0",
        "_si": ["search-head-1", "notable"],
        "_time": "2026-11-20T09:00:12.000+00:00",
        "annotations": '{"mitre_attack":["T1110.003"],"cis20":["CIS 16"]}',
        "annotations.mitre_attack": ["T1110.003", "T1078"],
        "annotations.mitre_attack.mitre_tactic": ["credential-access", "other"],
        "dest": ["web-1.example.com", "10.0.0.9"],
        "dest_risk_score": "560",
        "drilldown_earliest": "1795164300.000000000",
        "event_id": NAME,
        "extract_artifacts": '{"asset":["src","dest","jump_host"],'
        '"identity":["src_user","user","user_role","backup_account"]}',
        "backup_account": "svc-backup",
        "jump_host": "bastion-2",
        "index": "notable",
        "owner": "unassigned",
        "rule_description": "$user$ failed 40 times from $src$, $nobody$",
        "rule_id": NAME,
        "rule_name": "Many Failed Sign-ins",
        "rule_title": "Many failed sign-ins of $user$",
        "search_name": "Access - Many Failed Sign-ins - Rule",
        "severity": "medium",
        "source": "Access - Many Failed Sign-ins - Rule",
        "sourcetype": "stash",
        "src": "203.0.113.7",
        "src_user": "unknown",
        "status": "2",
        "status_end": "false",
        "status_group": "Open",
        "status_label": "In Progress",
        "urgency": "high",
        "user": "ann",
        "user_role": "admin",
    }
    return {**record, **changes}


def incident(**changes):
    return build_incident(finding(**changes), WEB)


def test_finding_becomes_incident():
    found = incident()
    assert found.external_id == NAME
    assert found.title == "Many failed sign-ins of ann"
    assert found.description == "ann failed 40 times from 203.0.113.7, $nobody$"
    assert (found.severity, found.raw_severity) == (Severity.HIGH, "high")
    assert (found.status, found.raw_status) == (IncidentStatus.ACTIVE, "In Progress")
    assert found.occurred_at == datetime(2026, 11, 20, 9, 0, 12, tzinfo=UTC)
    assert found.changed_at == datetime(2026, 11, 20, 9, 1, 4, tzinfo=UTC)
    assert found.tactics == ("TA0006",)
    [alert] = found.alerts
    assert (alert.external_id, alert.title) == (NAME, "Access - Many Failed Sign-ins - Rule")
    assert alert.rule == alert.title


@pytest.mark.parametrize(
    ("matched", "value", "kind"),
    [
        ("src", "198.51.100.4", EntityKind.IP),
        ("query", "evil.example.com", EntityKind.DOMAIN),
        ("file_hash", "9f" * 32, EntityKind.FILE_HASH),
        ("url", "https://evil.example.com/x", EntityKind.URL),
    ],
)
def test_matched_indicator_has_the_kind_of_its_field(matched, value, kind):
    found = incident(threat_match_field=matched, threat_match_value=value)
    assert Entity(kind, value) in found.entities
    other = incident(threat_match_field="certificate_serial", threat_match_value=value)
    assert Entity(kind, value) not in other.entities


def test_accounts_of_sign_ins_are_users():
    found = incident(acct="svc-web", target_user="root")
    assert {Entity(EntityKind.USER, "svc-web"), Entity(EntityKind.USER, "root")} <= set(
        found.entities
    )
    assert Entity(EntityKind.USER, "root") in found.targets


def test_entities_come_from_fields_without_placeholders():
    assert set(incident().entities) == {
        Entity(EntityKind.IP, "203.0.113.7"),
        Entity(EntityKind.IP, "10.0.0.9"),
        Entity(EntityKind.HOST, "web-1.example.com"),
        Entity(EntityKind.HOST, "bastion-2"),
        Entity(EntityKind.USER, "ann"),
        Entity(EntityKind.USER, "svc-backup"),
    }


def test_risk_object_has_its_declared_kind():
    found = incident(risk_object=["ann", "web-1"], risk_object_type=["user", "system"])
    assert Entity(EntityKind.HOST, "web-1") in found.entities
    assert Entity(EntityKind.HOST, "ann") not in found.entities


def test_hashes_urls_and_names_are_distinguished():
    hashed = "a" * 64
    found = incident(
        file_hash=f"SHA256={hashed},MD5={'b' * 32}",
        url="https://shop.example.com/x",
        query=["evil.example.net", "search index=main", "wpad"],
        recipient="ann@example.com",
        cve="CVE-2026-1234",
    )
    named = {entity.value for entity in found.entities}
    assert {hashed, "b" * 32, "https://shop.example.com/x", "evil.example.net"} <= named
    assert {"ann@example.com", "CVE-2026-1234"} <= named
    assert not named & {"search index=main", "wpad"}


def test_techniques_come_from_fields_and_json_strings():
    assert incident().techniques == ("T1110.003", "T1078")
    assert incident(**{"annotations.mitre_attack": None}).techniques == ("T1110.003",)


@pytest.mark.parametrize(
    ("status", "group", "ends", "meant"),
    [
        ("0", "New", "false", IncidentStatus.NEW),
        ("3", "Open", "false", IncidentStatus.ACTIVE),
        ("4", None, None, IncidentStatus.CLOSED),
        ("5", "Closed", "true", IncidentStatus.CLOSED),
        ("11", "Open", "false", IncidentStatus.ACTIVE),  # a customer's own
        ("12", "x-unheard-of", "true", IncidentStatus.CLOSED),
        ("13", None, None, IncidentStatus.NEW),
    ],
)
def test_custom_statuses_are_mapped_by_group(status, group, ends, meant):
    assert incident(status=status, status_group=group, status_end=ends).status is meant


def test_urgency_overrides_rule_severity():
    assert incident(urgency="informational", severity="critical").severity is Severity.INFORMATIONAL
    assert incident(urgency=None, severity="low").severity is Severity.LOW
    assumed = incident(urgency="P1")
    assert (assumed.severity, assumed.severity_assumed) == (Severity.MEDIUM, True)


def test_review_changes_the_incident():
    found = incident(tocsin_reviewed="1795170000.250000")
    assert found.changed_at == datetime(2026, 11, 20, 10, 20, 0, 250_000, tzinfo=UTC)


def test_volatile_fields_are_no_change():
    one, other = finding(), finding(_serial="7", _si=["search-head-2"], dest_risk_score="580")
    assert select_stable(one) == select_stable(other)
    assert select_stable(one) != select_stable(finding(status="5"))


def test_link_points_to_the_finding():
    query = f"search=event_id%3D%22{NAME.replace('@', '%40')}%22"
    assert incident().source_url == (
        f"{WEB}/app/SplunkEnterpriseSecuritySuite/incident_review"
        f"?earliest=1795165211&latest=1795165214&{query}"
    )
    assert build_incident(finding(), None).source_url is None


def test_version_8_id_contains_its_time():
    assert parse_id_time("2008e99d@@notable@@time1795165212") == datetime(
        2026, 11, 20, 9, 0, 12, tzinfo=UTC
    )
    assert parse_id_time(NAME) is None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"event_id": None, "rule_id": None}, "event_id is missing"),
        ({"event_id": None}, "but not found, because it is older"),
        ({"_time": None}, "_time is missing"),
        ({"_time": "soon"}, "is not in ISO 8601 format"),
        ({"_time": "2026-11-20T09:00:12"}, "has no time zone"),
        ({"_time": "999999999999"}, "out of range"),
    ],
)
def test_invalid_finding_is_rejected_with_reason(change, reason):
    with pytest.raises(ValueError, match=reason):
        incident(**change)


@given(st.dictionaries(st.sampled_from(sorted(finding())), JSON, max_size=6))
def test_any_field_may_have_any_type(changes):
    with contextlib.suppress(ValueError):  # a finding may be put aside, and nothing else
        assert incident(**changes).title
