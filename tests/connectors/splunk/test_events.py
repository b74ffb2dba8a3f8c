"""Mapping of log records to events."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin import Entity, EntityKind, RelationType
from tocsin_connectors.siem.splunk.events import build_event

from .test_findings import JSON

ATTACKER, WEB = Entity(EntityKind.IP, "203.0.113.7"), Entity(EntityKind.HOST, "web-1")
ANN = Entity(EntityKind.USER, "ann")
SIGN_IN = {
    "_time": "2026-11-20T09:00:12.123456789+01:00",
    "_raw": "Nov 20 09:00:12 web-1 sshd[7]: Accepted password for ann from 203.0.113.7",
    "action": "success",
    "dest": "web-1",
    "eventtype": ["sshd_authentication", "nix-all-logs"],
    "index": "linux",
    "signature": "Accepted\npassword",
    "sourcetype": "linux_secure",
    "src": "203.0.113.7",
    "tag": ["authentication", "remote"],
    "tocsin_origin": "linux~3~0B5E2C7A/7:1234",
    "user": "ann",
}


def test_sign_in_has_a_readable_summary():
    event = build_event(SIGN_IN)
    assert event.summary == (
        "linux_secure success: Accepted password, of ann from 203.0.113.7 to web-1"
    )
    assert event.occurred_at == datetime(2026, 11, 20, 8, 0, 12, 123_456, tzinfo=UTC)
    assert event.external_id == "linux~3~0B5E2C7A/7:1234"
    assert set(event.entities) == {ATTACKER, WEB, ANN}
    assert event.fields["tag"] == "authentication, remote"
    assert event.fields["raw"].startswith("Nov 20")


def test_only_successful_sign_ins_have_relations():
    told = {
        (relation.source, relation.type, relation.target)
        for relation in build_event(SIGN_IN).relations
    }
    assert told == {
        (ATTACKER, RelationType.CONNECTED_TO, WEB),
        (ANN, RelationType.LOGGED_ON_TO, WEB),
    }
    failed = build_event({**SIGN_IN, "action": "failure"})
    assert [relation.type for relation in failed.relations] == [RelationType.CONNECTED_TO]


def test_dns_name_is_related_to_its_answers():
    record = {**SIGN_IN, "query": "evil.example.net", "answer": ["198.51.100.9"], "tag": "dns"}
    [_, resolved] = build_event(record).relations
    assert resolved.type is RelationType.RESOLVES_TO
    assert resolved.target == Entity(EntityKind.IP, "198.51.100.9")


def test_address_beside_a_name_is_the_connection_source():
    record = {**SIGN_IN, "dest_ip": "10.0.0.9"}
    [connected, *_] = build_event(record).relations
    assert connected.target == Entity(EntityKind.IP, "10.0.0.9")


def test_sparse_record_has_a_summary():
    event = build_event({"_time": "1795165212.5"})
    assert (event.summary, event.external_id, event.entities) == ("an event", None, ())


def test_record_without_time_is_no_event():
    with pytest.raises(ValueError, match="_time is missing"):
        build_event({"_raw": "x"})


@given(st.dictionaries(st.sampled_from([*SIGN_IN, "query", "file_hash", "url"]), JSON, max_size=6))
def test_any_field_may_have_any_type(changes):
    with contextlib.suppress(ValueError):  # a record may be passed over, and nothing else
        assert build_event({**SIGN_IN, **changes}).summary.strip()
