"""Events from EVE records of every type."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin import Entity, EntityKind, RelationType, SiemEvent
from tocsin_connectors.siem.suricata import Suricata
from tocsin_connectors.siem.suricata.events import build_event

AT = datetime(2026, 11, 20, 9, 19, 51, 500000, UTC)
CLIENT, SERVER = Entity(EntityKind.IP, "192.0.2.7"), Entity(EntityKind.IP, "198.51.100.9")
SITE = Entity(EntityKind.DOMAIN, "shop.example")


def record(kind: str, **members) -> dict:
    return {
        "timestamp": "2026-11-20T10:19:51.500000+0100",
        "event_type": kind,
        "flow_id": 77,
        "src_ip": CLIENT.value,
        "src_port": 50000,
        "dest_ip": SERVER.value,
        "dest_port": 443,
        "proto": "TCP",
    } | members


def told(event: SiemEvent) -> set[tuple[str, str, str]]:
    return {
        (relation.source.value, relation.type.value, relation.target.value)
        for relation in event.relations
    }


def test_event_has_time_entities_and_summary():
    event = build_event(record("flow", flow={"bytes_toserver": 10, "bytes_toclient": 20}))
    assert event.occurred_at == AT
    assert event.external_id is None
    assert event.entities == (CLIENT, SERVER)
    ends = "(192.0.2.7:50000 to 198.51.100.9:443)"
    assert event.summary == f"flow: TCP, 10 bytes sent, 20 received {ends}"
    assert told(event) == {("192.0.2.7", "connected-to", "198.51.100.9")}
    assert event.relations[0].at == AT
    assert event.fields["flow.bytes_toserver"] == 10
    assert event.fields["flow_id"] == 77


ANSWERS = [
    {
        "answers": [
            {"rrname": "shop.example", "rrtype": "A", "rdata": "203.0.113.5"},
            {"rrname": "shop.example", "rrtype": "TXT", "rdata": "v=spf1"},
        ]
    },
    {"grouped": {"A": ["203.0.113.5"]}},
    {"rrtype": "A", "rdata": "203.0.113.5"},
]


@pytest.mark.parametrize("answers", ANSWERS)
def test_dns_response_relates_name_and_address(answers):
    event = build_event(record("dns", dns={"type": "answer", "rrname": "shop.example"} | answers))
    assert ("shop.example", "resolves-to", "203.0.113.5") in told(event)
    assert ("192.0.2.7", "related-to", "shop.example") in told(event)
    assert Entity(EntityKind.IP, "203.0.113.5") in event.entities
    assert "shop.example resolves to 203.0.113.5" in event.summary


def test_dns_query_has_a_relation():
    event = build_event(record("dns", dns={"queries": [{"rrname": "shop.example", "rrtype": "A"}]}))
    assert ("192.0.2.7", "related-to", "shop.example") in told(event)
    assert "query for shop.example" in event.summary


def test_file_is_related_to_its_download_url():
    digest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
    http = {"hostname": "shop.example", "url": "/a.exe", "http_method": "GET"}
    fileinfo = {"filename": "/a.exe", "sha256": digest, "size": 7}
    event = build_event(record("fileinfo", http=http, fileinfo=fileinfo))
    assert (digest, "downloaded-from", "http://shop.example/a.exe") in told(event)
    assert ("http://shop.example/a.exe", "part-of", "shop.example") in told(event)
    assert RelationType.CONNECTED_TO not in {relation.type for relation in event.relations}
    up = build_event(record("fileinfo", http=http | {"http_method": "POST"}, fileinfo=fileinfo))
    assert (digest, "sent-to", "http://shop.example/a.exe") in told(up)


def test_request_summary_has_its_response():
    http = {"hostname": "shop.example", "url": "/", "http_method": "GET", "status": 404}
    event = build_event(record("http", http=http))
    assert "GET http://shop.example/ returned 404" in event.summary
    assert ("192.0.2.7", "connected-to", "shop.example") in told(event)


def test_tls_server_name_is_the_connection_target():
    event = build_event(record("tls", tls={"sni": "shop.example"}))
    assert SITE in event.entities
    assert ("192.0.2.7", "connected-to", "shop.example") in told(event)


def test_mail_relates_its_sender_to_its_receivers():
    smtp = {"mail_from": "<eve@example.com>", "rcpt_to": ["<ann@example.org>"]}
    event = build_event(record("smtp", smtp=smtp))
    assert ("eve@example.com", "sent-to", "ann@example.org") in told(event)


@pytest.mark.parametrize(
    "members",
    [{"direction": "to_client"}, {"flow": {"src_ip": SERVER.value, "dest_ip": CLIENT.value}}],
)
def test_alert_on_a_response_starts_at_the_client(members):
    event = build_event(record("alert", alert={"signature": "ET MALWARE"}, **members))
    assert told(event) == {("198.51.100.9", "connected-to", "192.0.2.7")}
    assert event.summary.startswith("alert: ET MALWARE (")


def test_a_record_without_a_time_is_no_event():
    with pytest.raises(ValueError, match="timestamp is missing"):
        build_event({"event_type": "flow"})


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
parts = ("dns", "http", "tls", "fileinfo", "files", "flow", "smtp", "email", "alert")
inner = st.sampled_from(
    ["rrname", "rdata", "url", "hostname", "status", "grouped", "sni", "answers"]
)


@given(
    kind=st.sampled_from(["dns", "http", "tls", "fileinfo", "flow", "smtp", "alert", "other"]),
    members=st.dictionaries(st.sampled_from(parts), junk | st.dictionaries(inner, junk)),
)
def test_any_member_may_be_of_any_type(kind, members):
    event = build_event(record(kind, **members))
    assert len(event.summary.splitlines()) == 1
    assert CLIENT in event.entities


def test_event_kinds_are_those_of_the_records():
    assert Suricata.event_kinds.isdisjoint({EntityKind.PROCESS, EntityKind.CLOUD_RESOURCE})
    named = {EntityKind.IP, EntityKind.HOST, EntityKind.MAILBOX, EntityKind.USER, EntityKind.FILE}
    assert named <= Suricata.event_kinds
