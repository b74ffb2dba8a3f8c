"""Mapping of OCSF findings."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.connectors.json_values import JSON

from tocsin import Alert, IncidentStatus, Severity, Window
from tocsin_connectors.siem.ocsf import Ocsf, tocsin_providers

NOON = datetime(2024, 11, 20, 12, tzinfo=UTC)
SECONDS = int(NOON.timestamp())


def detection(**changes: Any) -> dict[str, Any]:
    return {
        "class_uid": 2004,
        "activity_id": 1,
        "severity_id": 4,
        "status_id": 1,
        "time": SECONDS * 1000,
        "finding_info": {
            "uid": "det-1",
            "title": "Miner started",
            "desc": "It burns CPU.",
            "analytic": {"name": "CPU miner", "type_id": 1, "uid": "rule-7"},
        },
        "metadata": {"uid": "event-1", "version": "1.5.0"},
    } | changes


def incident_finding(**changes: Any) -> dict[str, Any]:
    return {
        "class_uid": 2005,
        "activity_id": 2,
        "severity_id": 5,
        "status_id": 2,
        "time": SECONDS * 1000,
        "desc": "Two detections on one host.",
        "finding_info_list": [
            {"uid": "det-1", "title": "Miner started", "created_time": (SECONDS - 60) * 1000},
            {"uid": "det-2", "title": "Beacon seen", "analytic": {"type_id": 1, "uid": "rule-8"}},
        ],
        "metadata": {"uid": "case-7"},
    } | changes


def info(**fields: Any) -> dict[str, Any]:
    return {"finding_info": {"uid": "det-1"} | fields}


@pytest.fixture
def provider(make_feed, eve):
    return make_feed(eve, Ocsf).provider


def entities(provider: Ocsf, **changes: Any) -> list[tuple[str, str]]:
    return [(one.kind, one.value) for one in provider.to_incident(detection(**changes)).entities]


def test_plugin_hook_returns_the_provider():
    assert tocsin_providers() is Ocsf


def test_detection_finding_becomes_incident(provider):
    incident = provider.to_incident(detection())
    assert (incident.external_id, incident.title) == ("det-1", "Miner started")
    assert incident.description == "It burns CPU."
    assert (incident.severity, incident.status) == (Severity.HIGH, IncidentStatus.NEW)
    assert incident.occurred_at == incident.changed_at == NOON
    assert incident.alerts == (
        Alert(
            external_id="det-1",
            title="Miner started",
            severity=Severity.HIGH,
            occurred_at=NOON,
            rule="CPU miner",
        ),
    )


def test_security_finding_has_its_analytic_itself(provider):
    analytic = {"name": "CPU miner", "type_id": 1}
    finding = detection(class_uid=2001, finding_info=None, finding={"uid": "7"}, analytic=analytic)
    assert [alert.rule for alert in provider.to_incident(finding).alerts] == ["CPU miner"]


def test_incident_finding_becomes_incident_with_alerts(provider):
    incident = provider.to_incident(incident_finding(src_url="https://siem.example/7"))
    assert (incident.external_id, incident.status) == ("case-7", IncidentStatus.ACTIVE)
    assert [(alert.external_id, alert.rule) for alert in incident.alerts] == [
        ("det-1", None),
        ("det-2", "rule-8"),
    ]
    assert incident.description == "Two detections on one host."
    assert incident.source_url == "https://siem.example/7"
    assert incident.occurred_at == datetime(2024, 11, 20, 11, 59, tzinfo=UTC)


@pytest.mark.parametrize("class_uid", [4001])
def test_other_classes_are_no_incidents(provider, class_uid):
    assert provider.to_incident(detection(class_uid=class_uid)) is None


@pytest.mark.parametrize("class_uid", [None, "2004", {"unexpected": 2004}, True])
def test_unknown_class_is_rejected(provider, class_uid):
    """Passed over in silence, a file of something else would look like one without findings."""
    with pytest.raises(ValueError, match="class_uid"):
        provider.to_incident(detection(class_uid=class_uid))


def test_detection_without_uid_uses_metadata_uid(provider):
    assert provider.to_incident(detection(finding_info={})).external_id == "event-1"


def test_incident_id_differs_from_its_findings(provider):
    assert provider.to_incident(incident_finding(metadata={})).external_id == "incident-of:det-1"


@pytest.mark.parametrize(
    "changes", [{"finding_info": {}, "metadata": {}}, {"finding_info": 1, "metadata": []}]
)
def test_finding_without_uid_is_rejected(provider, changes):
    with pytest.raises(ValueError, match="uid"):
        provider.to_incident(detection(**changes))


@pytest.mark.parametrize(
    ("fields", "severity", "raw", "is_assumed"),
    [
        ({"severity_id": 1}, Severity.INFORMATIONAL, "1", False),
        ({"severity_id": 2}, Severity.LOW, "2", False),
        ({"severity_id": 3}, Severity.MEDIUM, "3", False),
        ({"severity_id": 5, "severity": "Critical"}, Severity.CRITICAL, "Critical", False),
        ({"severity_id": 6, "severity": "Fatal"}, Severity.CRITICAL, "Fatal", False),
        ({"severity_id": 0}, Severity.MEDIUM, "0", True),
        ({"severity_id": 99, "severity": "Spooky"}, Severity.MEDIUM, "Spooky", True),
        ({"severity_id": None, "severity": "high"}, Severity.HIGH, "high", False),
        ({"severity_id": "4"}, Severity.MEDIUM, None, True),
    ],
)
def test_severities(provider, fields, severity, raw, is_assumed):
    incident = provider.to_incident(detection(**fields))
    assert (incident.severity, incident.raw_severity) == (severity, raw)
    assert incident.severity_assumed == is_assumed


@pytest.mark.parametrize(
    ("fields", "status", "raw"),
    [
        ({"status_id": 1, "status": "New"}, IncidentStatus.NEW, "New"),
        ({"status_id": 2}, IncidentStatus.ACTIVE, "2"),
        ({"status_id": 3}, IncidentStatus.CLOSED, "3"),
        ({"status_id": 4}, IncidentStatus.CLOSED, "4"),
        ({"status_id": 5}, IncidentStatus.CLOSED, "5"),
        ({"status_id": 6}, IncidentStatus.CLOSED, "6"),
        ({"status_id": 3, "class_uid": 2005}, IncidentStatus.ACTIVE, "3"),
        ({"status_id": 4, "class_uid": 2005}, IncidentStatus.CLOSED, "4"),
        ({"status_id": 5, "class_uid": 2005}, IncidentStatus.CLOSED, "5"),
        ({"status_id": 6, "class_uid": 2005}, IncidentStatus.NEW, "6"),
        ({"status_id": 0, "status": "On Hold"}, IncidentStatus.ACTIVE, "On Hold"),
        ({"status_id": None, "status": "In Progress"}, IncidentStatus.ACTIVE, "In Progress"),
        ({"status_id": 99, "status": "Pondered"}, IncidentStatus.NEW, "Pondered"),
        ({"status_id": None, "activity_id": 3}, IncidentStatus.CLOSED, None),
        ({"status_id": 2, "activity_id": 3}, IncidentStatus.ACTIVE, "2"),
    ],
)
def test_statuses(provider, fields, status, raw):
    incident = provider.to_incident(detection(**fields))
    assert (incident.status, incident.raw_status) == (status, raw)


@pytest.mark.parametrize(
    "fields",
    [
        {"time": SECONDS},
        {"time": SECONDS * 1000},
        {"time": SECONDS * 1_000_000},
        {"time": SECONDS * 1_000_000_000},
        {"time": float(SECONDS)},
        {"time": "2024-11-20T13:00:00+01:00"},
        {"time": 1, "time_dt": "2024-11-20T12:00:00.000000000Z"},
        {"time_dt": "2024-11-20t12:00:00z"},
        {"time_dt": "2024-11-20 12:00:00.0000000Z"},
        {"time": SECONDS, "time_dt": "no time"},
        {"time": SECONDS, "time_dt": "2024-11-20T14:00:00"},  # of which zone?
    ],
)
def test_times_in_any_unit(provider, fields):
    assert provider.to_incident(detection(**fields)).occurred_at == NOON


@pytest.mark.parametrize("time", [None, 0, -1, True, "noon", "2024-11-20T12:00:00", 10**30, []])
def test_a_finding_without_a_time_is_rejected(provider, time):
    with pytest.raises(ValueError, match="time"):
        provider.to_incident(detection(time=time))


def test_times_are_first_seen_and_last_modified(provider):
    times = info(first_seen_time=SECONDS - 60, created_time=SECONDS, modified_time=SECONDS + 60)
    incident = provider.to_incident(detection(**times))
    assert incident.occurred_at == datetime(2024, 11, 20, 11, 59, tzinfo=UTC)
    assert incident.changed_at == datetime(2024, 11, 20, 12, 1, tzinfo=UTC)


def test_update_without_modified_time_is_newer(provider):
    update = detection(time=SECONDS + 60, **info(modified_time=SECONDS))
    assert provider.to_incident(update).changed_at == datetime(2024, 11, 20, 12, 1, tzinfo=UTC)


def test_late_older_version_is_recognized(provider):
    created = detection(activity_id=1, status_id=1, time=SECONDS * 1000)
    closed = detection(activity_id=3, status_id=4, time_dt="2024-11-20T12:00:00.0015Z")
    first, last = map(provider.to_incident, (created, closed))
    assert first.external_id == last.external_id
    assert first.changed_at < last.changed_at


@pytest.mark.parametrize("activity_id", [1, 2, 3, 99, None])
def test_changed_finding_keeps_its_id(provider, activity_id):
    assert provider.to_incident(detection(activity_id=activity_id)).external_id == "det-1"


def test_seconds_and_milliseconds_may_be_mixed(provider):
    """Some products write the one here and the other there."""
    times = info(created_time=SECONDS - 60, modified_time=(SECONDS + 60) * 1000)
    incident = provider.to_incident(detection(time=SECONDS, **times))
    assert incident.occurred_at == NOON - timedelta(minutes=1)
    assert incident.changed_at == NOON + timedelta(minutes=1)


@pytest.mark.parametrize(
    ("type_id", "value", "found"),
    [
        (1, "ws-7", ("host", "ws-7")),
        (2, "2001:0DB8::1", ("ip", "2001:db8::1")),
        (4, "alice", ("user", "alice")),
        (5, "Alice@corp.example", ("email", "alice@corp.example")),
        (6, "https://c2.example/a", ("url", "https://c2.example/a")),
        (7, "xmrig", ("file", "xmrig")),
        (8, "MD5:" + "AB" * 16, ("file_hash", "ab" * 16)),
        (9, "xmrig", ("process", "xmrig")),
        (10, "i-0123", ("cloud_resource", "i-0123")),
        (18, "CVE-2021-41773", ("cve", "CVE-2021-41773")),
        (22, "Miner <a@c2.example>", ("email", "a@c2.example")),
        (45, "/tmp/xmrig", ("file", "/tmp/xmrig")),
    ],
)
def test_observables(provider, type_id, value, found):
    observables = [{"name": "x", "type_id": type_id, "value": value}]
    assert entities(provider, observables=observables) == [found]


@pytest.mark.parametrize(
    "observable",
    [
        {"type_id": 2, "value": "nowhere"},
        {"type_id": 3, "value": "18:36:F3:98:4F:9A"},
        {"type_id": 99, "value": "x"},
        {"type_id": 24},  # an object, which has no value
        7,
    ],
)
def test_observables_that_are_no_entities(provider, observable):
    assert entities(provider, observables=[observable]) == []


def test_evidence(provider):
    evidence = {
        "src_endpoint": {"ip": "203.0.113.9"},
        "dst_endpoint": {"hostname": "ws-7"},
        "file": {"path": "/tmp/xmrig", "hashes": [{"algorithm_id": 3, "value": "ab" * 32}]},
        "process": {
            "name": "xmrig",
            "user": {"name": "alice"},
            "parent_process": {"name": "sh", "file": {"path": "/bin/sh"}},
        },
        "email": {
            "from": "a@c2.example",
            "to": ["Bob <bob@corp.example>"],
            "files": [{"name": "invoice.zip"}],
            "urls": [{"url_string": "https://c2.example/b", "hostname": "c2.example"}],
        },
        "tls": {"sni": "sni.c2.example"},
        "url": {"url_string": "https://c2.example/a"},
        "actor": {"user": {"email_addr": "bob@corp.example"}},
        "query": {"hostname": "c2.example"},
    }
    assert set(entities(provider, evidences=[evidence])) == {
        ("ip", "203.0.113.9"),
        ("host", "ws-7"),
        ("file", "/tmp/xmrig"),
        ("file_hash", "ab" * 32),
        ("process", "xmrig"),
        ("user", "alice"),
        ("url", "https://c2.example/a"),
        ("process", "sh"),
        ("file", "/bin/sh"),
        ("file", "invoice.zip"),
        ("email", "a@c2.example"),
        ("email", "bob@corp.example"),
        ("url", "https://c2.example/b"),
        ("domain", "c2.example"),
        ("domain", "sni.c2.example"),
    }


def test_resources_devices_and_vulnerabilities(provider):
    found = entities(
        provider,
        resources=[
            {"uid": "arn:aws:s3:::bucket", "owner": {"name": "carol"}},
            {"uid": "198.51.100.8", "group_name": "infected_device"},
        ],
        device={"hostname": "ws-7", "ip": "192.0.2.7"},
        vulnerabilities=[{"cve": {"uid": "CVE-2021-41773"}}],
    )
    assert set(found) == {
        ("cloud_resource", "arn:aws:s3:::bucket"),
        ("user", "carol"),
        ("ip", "198.51.100.8"),
        ("host", "ws-7"),
        ("ip", "192.0.2.7"),
        ("cve", "CVE-2021-41773"),
    }


def test_techniques(provider):
    attacks = [
        {"technique": {"uid": "T1496"}},
        {"technique": {"uid": "T1059"}, "sub_technique": {"uid": "T1059.004"}},
        {"tactic": {"uid": "TA0002"}},
    ]
    incident = provider.to_incident(detection(**info(attacks=attacks), attacks=attacks[:1]))
    assert incident.techniques == ("T1496", "T1059.004")


@pytest.mark.parametrize(
    ("url", "kept"), [("https://siem.example/1", "https://siem.example/1"), ("javascript:1", None)]
)
def test_only_web_addresses_are_links(provider, url, kept):
    assert provider.to_incident(detection(**info(src_url=url))).source_url == kept


def test_deeply_nested_evidence_is_parsed(provider):
    deep = orjson.loads(b"[" * 1000 + b"]" * 1000)
    assert entities(provider, evidences=deep, device=deep) == []


@given(
    changes=st.dictionaries(st.sampled_from([*detection(), "evidences", "observables"]), JSON),
    details=st.dictionaries(st.sampled_from(["uid", "title", "attacks", "created_time"]), JSON),
)
def test_any_field_may_have_any_type(changes, details):
    provider = Ocsf(Ocsf.Settings(plugin="ocsf", path="x"), None)
    for record in (detection(**changes), incident_finding(**changes), detection(**info(**details))):
        with contextlib.suppress(ValueError):  # a record may be rejected, and nothing else
            provider.to_incident(record)


async def test_backfill_reads_the_versions_of_its_window(make_feed, eve):
    versions = [detection(time=(SECONDS + 60 * minute) * 1000) for minute in range(5)]
    eve.write_bytes(b"\n".join(map(orjson.dumps, versions)) + b"\n")
    window = Window(NOON + timedelta(minutes=1), NOON + timedelta(minutes=3))
    brought = [
        incident.changed_at
        for page in await make_feed(eve, Ocsf).backfill(window)
        for incident in page.incidents
    ]
    assert brought == [NOON + timedelta(minutes=1), NOON + timedelta(minutes=2)]


async def test_a_file_becomes_pages(make_feed, eve):
    lines = [detection(), detection(class_uid=1), detection(time=None), detection(status_id=4)]
    eve.write_bytes(b"\n".join(map(orjson.dumps, lines)) + b"\n")
    (page,) = await make_feed(eve, Ocsf).read()
    assert [incident.status for incident in page.incidents] == ["New", "Closed"]
    assert (page.records, len(page.rejected)) == (4, 1)


def test_tactics_are_those_of_its_attacks(provider):
    attacks = [
        {"tactic": {"uid": "TA0006", "name": "Credential Access"}},
        {"tactics": [{"uid": "TA0001"}], "technique": {"uid": "T1110"}},
    ]
    found = provider.to_incident(detection(attacks=attacks))
    assert set(found.tactics) == {"TA0001", "TA0006"}
    assert found.techniques == ("T1110",)


# https://schema.ocsf.io/1.1.0/classes/security_finding
def test_legacy_security_finding_is_an_incident(provider):
    found = provider.to_incident(
        {
            "class_uid": 2001,
            "activity_id": 1,
            "severity_id": 4,
            "state_id": 2,
            "state": "In Progress",
            "time": SECONDS * 1000,
            "finding": {"uid": "old-1", "title": "Open bucket", "desc": "Anyone can read it."},
            "metadata": {"uid": "event-9", "version": "1.0.0"},
            "attacks": [{"tactics": [{"uid": "TA0009"}], "technique": {"uid": "T1530"}}],
            "resources": [{"uid": "arn:aws:s3:::corp", "type": "AwsS3Bucket"}],
        }
    )
    assert (found.external_id, found.title) == ("old-1", "Open bucket")
    assert found.description == "Anyone can read it."
    assert (found.status, found.raw_status) == (IncidentStatus.ACTIVE, "In Progress")
    assert (found.severity, found.techniques) == (Severity.HIGH, ("T1530",))
    assert found.tactics == ("TA0009",)


async def test_skipped_classes_are_named_once_in_the_coverage(make_feed, eve):
    feed = make_feed(eve, Ocsf)
    flow = {"class_uid": 4001, "class_name": "Network Activity", "time": SECONDS * 1000}
    records = (flow, {**flow, "class_uid": 3002, "class_name": None}, detection())
    for _ in range(2):
        with eve.open("ab") as file:
            file.writelines(orjson.dumps(record) + b"\n" for record in records)
        await feed.read()
    covered = [part for page in feed.pages for part in page.covered]
    assert [part.passed_over for part in covered if part.passed_over] == [
        "records of class 4001 (Network Activity) are not findings",
        "records of class 3002 are not findings",
    ]
    assert len(feed.ids) == 2
