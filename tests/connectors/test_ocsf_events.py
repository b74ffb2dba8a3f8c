"""Events from OCSF records of every class."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tocsin import Entity, EntityKind, SiemEvent
from tocsin_connectors.siem.ocsf.events import build_event

AT = datetime(2026, 11, 20, 9, 19, 51, 500000, UTC)
CLIENT, SERVER = Entity(EntityKind.IP, "192.0.2.7"), Entity(EntityKind.IP, "198.51.100.9")


def record(kind: int, **members) -> dict:
    return {
        "class_uid": kind,
        "time": int(AT.timestamp() * 1000),
        "metadata": {"uid": "e1", "product": {"url_string": "https://vendor.example"}},
        "src_endpoint": {"ip": CLIENT.value, "port": 50000},
        "dst_endpoint": {"ip": SERVER.value, "port": 443},
    } | members


def told(event: SiemEvent) -> set[tuple[str, str, str]]:
    return {
        (relation.source.value, relation.type.value, relation.target.value)
        for relation in event.relations
    }


def test_event_has_time_entities_and_summary():
    event = build_event(record(4001, class_name="Network Activity", activity_name="Open"))
    assert (event.external_id, event.occurred_at) == ("e1", AT)
    assert event.summary == "Network Activity, Open: 192.0.2.7 to 198.51.100.9"
    assert event.entities == (CLIENT, SERVER)
    assert told(event) == {("192.0.2.7", "connected-to", "198.51.100.9")}
    assert event.fields["dst_endpoint.port"] == 443


def test_dns_response_relates_name_and_address():
    answers = [{"type": "A", "rdata": "203.0.113.5"}, {"type": "TXT", "rdata": "v=spf1"}]
    event = build_event(record(4003, query={"hostname": "shop.example"}, answers=answers))
    assert ("shop.example", "resolves-to", "203.0.113.5") in told(event)
    assert ("192.0.2.7", "related-to", "shop.example") in told(event)
    assert Entity(EntityKind.DOMAIN, "shop.example") in event.entities


@pytest.mark.parametrize(("status", "is_told"), [(1, True), (2, False)])
def test_sign_in_has_a_relation(status, is_told):
    members = {"activity_id": 1, "status_id": status, "user": {"name": "ann"}}
    event = build_event(record(3002, dst_endpoint={"hostname": "web-1"}, **members))
    assert (("ann", "logged-on-to", "web-1") in told(event)) is is_told
    assert Entity(EntityKind.USER, "ann") in event.entities


def test_process_is_related_to_its_device():
    members = {
        "device": {"hostname": "web-1"},
        "process": {"name": "sh"},
        "actor": {"process": {"name": "nginx"}, "user": {"name": "www"}},
    }
    event = build_event(record(1007, **members))
    assert {("sh", "executed-on", "web-1"), ("nginx", "started", "sh")} <= told(event)


def test_file_is_related_to_its_download_url():
    digest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
    url = "http://shop.example/a.exe"
    members = {
        "http_request": {"http_method": "GET", "url": {"url_string": url}},
        "file": {"name": "a.exe", "hashes": [{"value": digest}]},
    }
    assert (digest, "downloaded-from", url) in told(build_event(record(4002, **members)))


def test_mail_relates_its_sender_to_its_receivers():
    email = {"from": "eve@example.com", "to": ["ann@example.org"]}
    event = build_event(record(4009, email=email))
    assert ("eve@example.com", "sent-to", "ann@example.org") in told(event)


def test_a_record_without_a_time_is_no_event():
    with pytest.raises(ValueError, match="time is missing"):
        build_event({"class_uid": 4001})
