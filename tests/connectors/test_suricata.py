"""Mapping of Suricata EVE records."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.connectors.json_values import JSON

from tocsin import Entity, EntityKind, Severity
from tocsin_connectors.siem.suricata import Suricata, tocsin_providers

KEYS = st.sampled_from(
    ["src_ip", "dest_ip", "http", "dns", "tls", "smtp", "email", "files", "fileinfo", "proto"]
)
ALERT_KEYS = st.sampled_from(
    ["gid", "signature_id", "signature", "severity", "category", "action", "metadata"]
)


def alert(**changes: Any) -> dict[str, Any]:
    """A web attack on a shop; `alert__x` changes what is inside `alert`."""
    inside = {
        "action": "allowed",
        "gid": 1,
        "signature_id": 9000001,
        "signature": "LOCAL Path traversal in shop",
        "category": "Web Application Attack",
        "severity": 1,
    } | {key[7:]: changes.pop(key) for key in list(changes) if key.startswith("alert__")}
    return {
        "timestamp": "2026-11-20T12:34:56.789012+0000",
        "flow_id": 1122334455667788,
        "event_type": "alert",
        "src_ip": "203.0.113.9",
        "src_port": 40000,
        "dest_ip": "192.0.2.80",
        "dest_port": 80,
        "proto": "TCP",
        "app_proto": "http",
        "tx_id": 0,
        "alert": inside,
    } | changes


@pytest.fixture
def provider(make_feed, eve):
    return make_feed(eve, Suricata).provider


def entities(provider: Suricata, **changes: Any) -> set[tuple[EntityKind, str]]:
    addresses = {"203.0.113.9", "192.0.2.80"}
    found = provider.to_incident(alert(**changes)).entities
    return {(one.kind, one.value) for one in found if one.value not in addresses}


def test_plugin_hook_returns_the_provider():
    assert tocsin_providers() is Suricata


def test_alert_becomes_incident(provider):
    incident = provider.to_incident(alert())
    assert incident.external_id == "1:9000001/203.0.113.9/2026-11-20T12:00:00+00:00"
    assert incident.title == "LOCAL Path traversal in shop"
    assert incident.description == (
        "Web Application Attack: Suricata allowed this TCP traffic (http)."
    )
    assert incident.occurred_at == datetime(2026, 11, 20, 12, 34, 56, 789012, UTC)
    assert Entity(EntityKind.IP, "203.0.113.9") in incident.entities
    assert [(one.title, one.rule) for one in incident.alerts] == [(incident.title, incident.title)]
    [unnamed] = provider.to_incident(alert(alert__signature=None)).alerts
    assert unnamed.rule == "1:9000001"


@pytest.mark.parametrize("action", ["allowed", "blocked"])
def test_description_has_the_action(provider, action):
    incident = provider.to_incident(alert(alert__action=action))
    assert f"Suricata {action} this TCP traffic" in incident.description


@pytest.mark.parametrize("kind", ["flow", "http", "stats", ""])
def test_other_events_are_no_incidents(provider, kind):
    assert provider.to_incident(alert(event_type=kind)) is None


def test_alerts_of_one_signature_source_and_hour_are_one_incident(provider):
    first = provider.to_incident(alert())
    later = provider.to_incident(alert(timestamp="2026-11-20T13:59:59+0100", dest_ip="192.0.2.81"))
    (folded,) = provider.fold([later, first])
    assert folded.external_id == first.external_id
    assert folded.occurred_at == first.occurred_at
    assert len(folded.alerts) == 2
    assert {one.value for one in folded.entities} == {"203.0.113.9", "192.0.2.80", "192.0.2.81"}


@pytest.mark.parametrize(
    "changes",
    [
        {"alert__gid": 3},
        {"alert__signature_id": 9000002},
        {"src_ip": "203.0.113.10"},
        {"timestamp": "2026-11-20T13:00:00+0000"},
    ],
)
def test_fields_that_distinguish_incidents(provider, changes):
    incidents = [provider.to_incident(alert()), provider.to_incident(alert(**changes))]
    assert len(provider.fold(incidents)) == 2


async def test_replay_of_old_packets_is_read(make_feed, eve):
    """The time of an alert is that of its packet; where to go on is known by bytes alone."""
    feed = make_feed(eve, Suricata)
    for moment in ("2026-11-20T12:00:00+0000", "2009-01-05T12:00:00+0000"):
        with eve.open("ab") as file:
            file.write(orjson.dumps(alert(timestamp=moment)) + b"\n")
        await feed.read()
    assert [name[-25:-15] for name in feed.ids] == ["2026-11-20", "2009-01-05"]


def test_grouping_window_is_configurable(make_feed, eve):
    provider = make_feed(eve, Suricata, window="1d").provider
    assert provider.to_incident(alert()).external_id.endswith("/2026-11-20T00:00:00+00:00")


def test_empty_window_is_an_error(make_feed, eve):
    with pytest.raises(ValidationError, match="window"):
        make_feed(eve, Suricata, window="0s")


def test_highest_alert_severity_of_a_page_counts(provider):
    severities = [3, 1, 2]
    incidents = [provider.to_incident(alert(alert__severity=number)) for number in severities]
    (folded,) = provider.fold(incidents)
    assert (folded.severity, folded.raw_severity) == (Severity.HIGH, "1")


@pytest.mark.parametrize(
    ("number", "word", "severity", "raw"),
    [
        (1, None, Severity.HIGH, "1"),
        (2, None, Severity.MEDIUM, "2"),
        (3, None, Severity.LOW, "3"),
        (4, None, Severity.INFORMATIONAL, "4"),
        (255, None, Severity.INFORMATIONAL, "255"),
        (3, ["Critical"], Severity.CRITICAL, "Critical"),
        (3, ["Major"], Severity.HIGH, "Major"),
        (1, ["minor"], Severity.LOW, "minor"),
        (1, "Informational", Severity.INFORMATIONAL, "Informational"),
        (2, ["Unheard"], Severity.MEDIUM, "2"),
    ],
)
def test_severities(provider, number, word, severity, raw):
    metadata = {"signature_severity": word}
    incident = provider.to_incident(alert(alert__severity=number, alert__metadata=metadata))
    assert (incident.severity, incident.raw_severity) == (severity, raw)
    assert not incident.severity_assumed


@pytest.mark.parametrize("number", [None, "1", 0, -1, 256, True, 1.5])
def test_unknown_severity_is_medium(provider, number):
    incident = provider.to_incident(alert(alert__severity=number))
    assert (incident.severity, incident.severity_assumed) == (Severity.MEDIUM, True)


def test_unknown_value_is_kept(provider):
    changes = {"alert__severity": None, "alert__metadata": {"signature_severity": ["Unheard"]}}
    incident = provider.to_incident(alert(**changes))
    assert (incident.severity_assumed, incident.raw_severity) == (True, "Unheard")


@pytest.mark.parametrize(
    "changes",
    [
        {"community_id": "1:wCb3OG7yAFWelaUydu0D+125CLM="},
        {"in_iface": "eth1"},
        {"alert__rev": 4, "alert__signature": "LOCAL Renamed"},
        {"http": {"hostname": "shop.example"}},
    ],
)
def test_alert_id_ignores_optional_fields(provider, changes):
    (once,), (again,) = (
        provider.to_incident(record).alerts for record in (alert(), alert(**changes))
    )
    assert once.external_id == again.external_id


@pytest.mark.parametrize(
    "changes",
    [
        {"flow_id": 1},
        {"tx_id": 1},
        {"timestamp": "2026-11-20T12:34:56.789013+0000"},
        {"alert__gid": 2},
        {"alert__signature_id": 9000002},
        {"src_ip": "203.0.113.10"},
        {"dest_ip": "192.0.2.81"},
        {"dest_port": 443},
        {"pcap_cnt": 17},
        {"flow": {"pkts_toserver": 3, "bytes_toserver": 900}},
    ],
)
def test_fields_that_distinguish_alerts(provider, changes):
    (one,), (other,) = (
        provider.to_incident(record).alerts for record in (alert(), alert(**changes))
    )
    assert one.external_id != other.external_id


def test_alert_id_is_stable(provider):
    (once,), (again,) = (provider.to_incident(alert()).alerts for _ in range(2))
    (other,) = provider.to_incident(alert(src_port=40001)).alerts
    assert once.external_id == again.external_id != other.external_id


@pytest.mark.parametrize(
    ("http", "found"),
    [
        (
            {"hostname": "Shop.Example.", "url": "/a?b=c"},
            {("domain", "shop.example"), ("url", "http://shop.example./a?b=c")},
        ),
        (
            {"hostname": "shop.example", "http_port": 8080, "url": "/"},
            {("domain", "shop.example"), ("url", "http://shop.example:8080/")},
        ),
        ({"hostname": "198.51.100.7"}, {("ip", "198.51.100.7")}),
        ({"url": "http://other.example/x"}, {("url", "http://other.example/x")}),
        ({"hostname": "shop.example", "url": "shop.example:443"}, {("domain", "shop.example")}),
        ({"hostname": "not a name", "url": 7}, set()),
    ],
)
def test_entities_of_http(provider, http, found):
    assert entities(provider, http=http) == found


@pytest.mark.parametrize(
    "dns",
    [
        {"rrname": "C2.example"},
        {"query": [{"type": "query", "rrname": "c2.example"}]},
        {"version": 3, "queries": [{"rrname": "c2.example", "rrtype": "A"}]},
    ],
)
def test_entities_of_dns(provider, dns):
    assert entities(provider, dns=dns) == {("domain", "c2.example")}


@pytest.mark.parametrize("protocol", ["tls", "quic"])
def test_requested_server_names_are_entities(provider, protocol):
    assert entities(provider, **{protocol: {"sni": "c2.example"}}) == {("domain", "c2.example")}


def test_entities_of_files(provider):
    files = [{"filename": "/x", "sha256": "AB" * 32}, {"md5": "cd" * 16}, {"sha1": "short"}]
    assert entities(provider, files=files, fileinfo={"sha1": "ef" * 20}) == {
        ("file_hash", "ab" * 32),
        ("file_hash", "cd" * 16),
        ("file_hash", "ef" * 20),
    }


# https://docs.suricata.io/en/latest/output/eve/eve-json-format.html
@pytest.mark.parametrize(
    ("record", "found"),
    [
        ({"krb5": {"cname": "robin", "realm": "CORP", "sname": "ldap/dc-1"}}, {("user", "robin")}),
        ({"krb5": {"cname": "<empty>"}}, set()),
        (
            {
                "smb": {
                    "ntlmssp": {"domain": "CORP", "user": "ann", "host": "WS-7"},
                    "share_type": "FILE",
                    "filename": "tools\\drop.exe",
                }
            },
            {("user", "ann"), ("host", "ws-7"), ("file", "tools\\drop.exe")},
        ),
        ({"smb": {"share_type": "PIPE", "filename": "srvsvc"}}, set()),
        ({"smb": {"filename": "<share_root>"}}, set()),
        (
            {"smb": {"rename": {"from": "a.doc", "to": "a.locked"}}},
            {("file", "a.doc"), ("file", "a.locked")},
        ),
        ({"ftp": {"command": "USER", "command_data": "ann"}}, {("user", "ann")}),
        ({"ftp": {"command": "PASS", "command_data": "a secret"}}, set()),
        ({"ftp": {"command": "RETR", "command_data": "plan.zip"}}, {("file", "plan.zip")}),
        ({"ftp_data": {"filename": "plan.zip"}}, {("file", "plan.zip")}),
        ({"nfs": {"filename": "/export/plan.zip"}}, {("file", "/export/plan.zip")}),
        (
            {"dhcp": {"hostname": "laptop-3", "assigned_ip": "10.0.0.9"}},
            {("host", "laptop-3"), ("ip", "10.0.0.9")},
        ),
        ({"dhcp": {"assigned_ip": "0.0.0.0"}}, set()),
    ],
)
def test_accounts_machines_and_files_of_protocols_are_entities(provider, record, found):
    assert entities(provider, **record) == found


@pytest.mark.parametrize("name", ["CVE-2021-44228", "(cve 2021 44228)", "CVE_2021_44228"])
def test_cve_in_the_signature_is_an_entity(provider, name):
    signature = f"LOCAL Lookup in a request {name} M1 2026-11-20"
    assert entities(provider, alert__signature=signature) == {("cve", "CVE-2021-44228")}


def test_alerts_of_one_microsecond_are_counted(provider):
    flows = [{"pkts_toserver": number} for number in (3, 4, 4)]
    (folded,) = provider.fold([provider.to_incident(alert(flow=flow)) for flow in flows])
    assert len(folded.alerts) == 2


def test_entities_of_mail(provider):
    smtp = {"mail_from": "<Bounce@Shop.example>", "rcpt_to": ["<bob@corp.example>"]}
    email = {"from": '"A, B" <a@shop.example>', "to": ["Bob <bob@corp.example>", "undisclosed"]}
    assert entities(provider, smtp=smtp, email=email) == {
        ("email", "bounce@shop.example"),
        ("email", "a@shop.example"),
        ("email", "bob@corp.example"),
    }


@pytest.mark.parametrize("name", ["CVE_2021_41773", "cve-2021-41773", "2021_41773"])
def test_cves_are_normalized(provider, name):
    metadata = {"cve": [name, "CVE_none"]}
    assert entities(provider, alert__metadata=metadata) == {("cve", "CVE-2021-41773")}


def test_techniques(provider):
    metadata = {
        "mitre_technique_id": ["T1190", "t1059_001", "other"],
        "mitre_attack": ["T1071", "T1190"],
        "mitre_tactic_id": ["TA0001"],
        "mitre_tactic_name": ["Initial_Access"],
    }
    found = provider.to_incident(alert(alert__metadata=metadata))
    assert found.techniques == ("T1190", "T1059.001", "T1071")
    assert found.tactics == ("TA0001",)
    assert provider.fold([found, provider.to_incident(alert())])[0].tactics == ("TA0001",)


def test_alert_without_addresses_becomes_incident(provider):
    record = alert()
    del record["src_ip"], record["dest_ip"], record["proto"], record["app_proto"]
    incident = provider.to_incident(record)
    assert incident.external_id == "1:9000001/-/2026-11-20T12:00:00+00:00"
    assert incident.entities == ()


def test_addresses_are_normalized(provider):
    incident = provider.to_incident(alert(src_ip="2001:0db8:0000:0000:0000:0000:0000:0001"))
    assert "/2001:db8::1/" in incident.external_id


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"event_type": None}, "event_type is missing"),
        ({"event_type": ["alert"]}, "event_type is of the wrong type"),
        ({"timestamp": None}, "timestamp is missing"),
        ({"timestamp": "2026-11-20T12:34:56.789012"}, "has no time zone"),
        ({"timestamp": "yesterday"}, "yesterday"),
        ({"timestamp": "0001-01-01T00:00:00+2359"}, "out of range"),
        ({"alert": None}, "signature_id"),
        ({"alert__signature_id": "9000001"}, "signature_id"),
    ],
)
def test_missing_required_fields_are_rejected(provider, changes, reason):
    with pytest.raises(ValueError, match=reason):
        provider.to_incident(alert(**changes))


@given(
    changes=st.dictionaries(KEYS, JSON, max_size=3),
    inside=st.dictionaries(ALERT_KEYS, JSON, max_size=3),
)
def test_any_field_may_have_any_type(changes, inside):
    settings = Suricata.Settings(plugin="suricata", path="x")
    provider = Suricata(settings, None)
    record = alert(**changes, **{f"alert__{key}": value for key, value in inside.items()})
    with contextlib.suppress(ValueError):  # a record may be rejected, and nothing else
        incident = provider.to_incident(record)
        assert provider.fold([incident, incident]) == (incident,)


async def test_a_file_becomes_pages(make_feed, eve):
    lines = [alert(), alert(event_type="flow"), alert(timestamp="never"), alert(src_port=1)]
    eve.write_bytes(b"\n".join(map(orjson.dumps, lines)) + b"\n")
    feed = make_feed(eve, Suricata)
    (page,) = await feed.read()
    (incident,) = page.incidents
    assert (page.records, len(incident.alerts), len(page.rejected)) == (4, 2, 1)
    assert feed.provider.settings.poll_interval.total_seconds() == 5
