"""Mapping of the alerts of each product."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from full_run import scale_examples
from tocsin import EntityKind, IncidentStatus, Severity
from tocsin_connectors.siem.crowdstrike.mapping import build_incident, parse_severity

CONSOLE = "https://falcon.eu-1.crowdstrike.com"
NAME = "00112233445566778899aabbccddeeff:ind:a1:77-10303-5"
ALERT: dict[str, Any] = {
    "composite_id": NAME,
    "created_timestamp": "2026-11-20T10:00:03.123456789Z",
    "updated_timestamp": "2026-11-20T10:05:00.987654321Z",
    "timestamp": "2026-11-20T10:00:01.5Z",
    "display_name": "Credentials from LSASS",
    "severity": 70,
    "severity_name": "High",
    "status": "in_progress",
}
ENDPOINT = {
    "product": "epp",
    "device": {
        "hostname": "BASTION",
        "external_ip": "203.0.113.9",
        "local_ip": "10.1.2.3",
        "device_id": "ab",
    },
    "user_name": "ann",
    "user_principal": "ann@example.com",
    "sha256": "9f" * 32,
    "sha1": "0" * 40,
    "md5": "0" * 32,
    "filename": "procdump.exe",
    "filepath": r"\Device\HarddiskVolume3\Temp\procdump.exe",
    "cmdline": "procdump.exe -ma lsass.exe",
    "parent_details": {"filename": "cmd.exe", "sha256": "7c" * 32},
    "network_accesses": [{"remote_address": "198.51.100.4", "remote_port": 443}],
    "ioc_context": [{"ioc_type": "domain", "ioc_value": "evil.example.com"}],
    "tactic_id": "TA0006",
    "technique_id": "T1003.001",
    "mitre_attack": [
        {"technique_id": "CST0007", "tactic_id": "CSTA0004"},
        {"technique_id": "T1059"},
    ],
}
IDENTITY = {
    "product": "idp",
    "start_time": "2026-11-20T09:00:00Z",
    "source_account_upn": "bob@example.com",
    "source_endpoint_host_name": "laptop-7",
    "source_endpoint_address_ip4": "198.51.100.7",
    "target_endpoint_host_name": "dc1.example.com",
}
# https://developer.crowdstrike.com/docs/openapi/ ; an automated lead sums up signals
LEAD = {
    "product": "automated-lead",
    "type": "automated-lead",
    "score": 85,
    "severity": None,
    "severity_name": None,
    "signal_start_timestamp": "2026-11-20T08:00:00Z",
    "threatgraph_indicators": [{"hostname": "WS-7", "host_id": "ab", "pattern_id": 10}],
    "mitre_attack": [{"technique_id": "T1059"}],
}
NEXT_GEN = {
    "product": "ngsiem",
    "source_hosts": ["ws-9"],
    "destination_hosts": ["db-1"],
    "source_ips": ["192.0.2.9"],
    "file_writes": [{"name": "drop.exe", "sha256": "5e" * 32}],
    "activity_device": {"hostname": "gw-1", "local_ip": "10.9.0.1"},
    "target_domain_controller_host_name": "dc2.example.com",
}
CLOUD = {
    "product": "fcs",
    "aggregate_id": "",
    "first_timestamp": "2026-11-20T09:50:00Z",
    "source_account_name": "a-cloud-account",
    "source_ips": ["192.0.2.1"],
    "source_ip_address": "192.0.2.1",
    "user_names": ["deploy"],
    "resource_id": "sg-1",
    "device": {"service_provider": "aws"},
}


def entities(**members: Any) -> set[tuple[str, str]]:
    incident = build_incident(ALERT | members, CONSOLE)
    return {(entity.kind.value, entity.value) for entity in incident.entities}


def test_alert_maps_to_incident_as_in_the_console():
    incident = build_incident(ALERT | ENDPOINT, CONSOLE)
    assert incident.external_id == NAME
    assert incident.title == "Credentials from LSASS"
    assert (incident.severity, incident.raw_severity) == (Severity.HIGH, "High")
    assert (incident.status, incident.raw_status) == (IncidentStatus.ACTIVE, "in_progress")
    assert incident.occurred_at == datetime(2026, 11, 20, 10, 0, 1, 500_000, tzinfo=UTC)
    assert incident.changed_at == datetime(2026, 11, 20, 10, 5, 0, 987_654, tzinfo=UTC)
    assert incident.description == "Command line: procdump.exe -ma lsass.exe"
    assert incident.techniques == ("T1003.001", "T1059")
    assert incident.tactics == ("TA0006",)
    assert incident.source_url == f"{CONSOLE}/unified-detections/{NAME}"
    assert [alert.external_id for alert in incident.alerts] == [NAME]
    assert [alert.rule for alert in incident.alerts] == ["Credentials from LSASS"]


def test_endpoint_alert_names_its_entities():
    assert entities(**ENDPOINT) == {
        ("host", "bastion"),
        ("ip", "203.0.113.9"),
        ("ip", "10.1.2.3"),
        ("ip", "198.51.100.4"),
        ("user", "ann"),
        ("user", "ann@example.com"),
        ("file_hash", "9f" * 32),
        ("file_hash", "7c" * 32),
        ("file", ENDPOINT["filepath"]),
        ("process", "procdump.exe"),
        ("process", "cmd.exe"),
        ("domain", "evil.example.com"),
    }


def test_lead_has_its_hosts_score_and_start():
    incident = build_incident(ALERT | LEAD, CONSOLE)
    assert [(entity.kind, entity.value) for entity in incident.entities] == [
        (EntityKind.HOST, "ws-7")
    ]
    assert (incident.severity, incident.severity_assumed) == (Severity.CRITICAL, False)
    assert incident.occurred_at == datetime(2026, 11, 20, 8, tzinfo=UTC)
    assert incident.techniques == ("T1059",)
    assert [alert.rule for alert in incident.alerts] == [None]
    in_milliseconds = ALERT | LEAD | {"signal_start_timestamp": 1_795_161_600_000}
    assert build_incident(in_milliseconds, CONSOLE).occurred_at == incident.occurred_at


def test_alert_of_next_gen_siem_names_hosts_files_and_roles():
    assert entities(**NEXT_GEN) == {
        *(("host", "ws-9"), ("host", "db-1"), ("host", "gw-1"), ("host", "dc2.example.com")),
        *(("ip", "192.0.2.9"), ("ip", "10.9.0.1")),
        *(("file", "drop.exe"), ("file_hash", "5e" * 32)),
    }
    incident = build_incident(ALERT | NEXT_GEN, CONSOLE)
    assert {entity.value for entity in incident.sources} == {"ws-9", "192.0.2.9"}
    assert {entity.value for entity in incident.targets} == {"db-1", "dc2.example.com"}


def test_identity_alert_names_source_and_target():
    assert entities(**IDENTITY) == {
        ("user", "bob@example.com"),
        ("host", "laptop-7"),
        ("host", "dc1.example.com"),
        ("ip", "198.51.100.7"),
    }
    began = build_incident(ALERT | IDENTITY, CONSOLE).occurred_at
    assert began == datetime(2026, 11, 20, 9, tzinfo=UTC)


def test_cloud_alert_names_resource_not_account():
    assert entities(**CLOUD) == {
        ("ip", "192.0.2.1"),
        ("user", "deploy"),
        ("cloud_resource", "sg-1"),
    }


@pytest.mark.parametrize(
    ("number", "severity"),
    [
        (100, Severity.CRITICAL),
        (80, Severity.CRITICAL),
        (79, Severity.HIGH),
        (40, Severity.MEDIUM),
        (20, Severity.LOW),
        (1, Severity.INFORMATIONAL),
        (0, None),
        (101, None),
    ],
)
def test_severity_without_name_uses_its_number(number, severity):
    assert parse_severity(None, number) is severity


def test_number_alone_is_the_raw_severity():
    incident = build_incident(ALERT | {"severity_name": None, "severity": 30}, CONSOLE)
    assert (incident.severity, incident.raw_severity) == (Severity.LOW, "30")
    assert not incident.severity_assumed


@pytest.mark.parametrize(("word", "status"), [("reopened", "New"), ("closed", "Closed")])
def test_alert_statuses(word, status):
    assert build_incident(ALERT | {"status": word}, CONSOLE).status == status


def test_hidden_alert_is_marked():
    hidden = {"show_in_ui": False, "resolution": "false_positive"}
    incident = build_incident(ALERT | hidden, CONSOLE)
    assert incident.description == "Resolved as: false_positive\nHidden in the console"


def test_invalid_link_is_ignored():
    odd = build_incident(ALERT | {"falcon_host_link": "javascript:alert(1)"}, CONSOLE)
    assert odd.source_url == f"{CONSOLE}/unified-detections/{NAME}"


@pytest.mark.parametrize("member", ["composite_id", "updated_timestamp"])
def test_alert_without_id_is_rejected(member):
    with pytest.raises(ValueError, match=f"{member} is missing"):
        build_incident({key: item for key, item in ALERT.items() if key != member}, CONSOLE)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["hostname", "ioc_type", "technique_id"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from([*ALERT, *ENDPOINT, *IDENTITY, *CLOUD]), JSON))
@settings(max_examples=scale_examples(50))
def test_any_alert_is_parsed_or_rejected(members):
    try:
        incident = build_incident(ALERT | ENDPOINT | members, CONSOLE)
    except ValueError:
        return
    assert incident.external_id
    assert all(entity.kind in EntityKind and entity.value for entity in incident.entities)
