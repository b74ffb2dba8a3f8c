"""Entities in structured data."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.observables import find_in_record

HEX = "0123456789abcdef" * 8


def found(record) -> list[str]:
    return [f"{one.kind} {one.value}" for one in find_in_record(record).entities]


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"user": {"name": "alice"}}, ["user alice"]),
        ({"user.name": "alice"}, ["user alice"]),
        ({"TargetUserName": "alice"}, ["user alice"]),
        ({"AccountUpn": "alice@example.com"}, ["user alice@example.com"]),
        ({"user": {"target": {"name": "alice"}}}, ["user alice"]),
        ({"user.effective.name": "alice"}, ["user alice"]),
        ({"syscheck": {"uname_after": "alice"}}, ["user alice"]),
        ({"dstuser": "root(uid=0)"}, ["user root"]),
        ({"related": {"hosts": ["web01", "192.0.2.7"]}}, ["host web01", "ip 192.0.2.7"]),
        ({"target": {"name": "quarterly report"}}, []),
        ({"host": {"name": "WEB01"}}, ["host web01"]),
        ({"DeviceName": "web01.example.com"}, ["host web01.example.com"]),
        ({"http": {"hostname": "cdn.example.com"}}, ["domain cdn.example.com"]),
        ({"dns": {"question": {"name": "update.zip"}}}, ["domain update.zip"]),
        ({"process": {"name": "sshd"}}, ["process sshd"]),
        ({"process": {"executable": "/usr/sbin/sshd"}}, ["file /usr/sbin/sshd", "process sshd"]),
        ({"file": {"name": "a b.pdf"}}, ["file a b.pdf"]),
        ({"url": {"full": "https://evil.com/x"}}, ["url https://evil.com/x", "domain evil.com"]),
        ({"src_ip": "192.0.2.7", "SourceIp": "::ffff:192.0.2.8"}, ["ip 192.0.2.7", "ip 192.0.2.8"]),
        ({"file": {"hash": {"md5": HEX[:32]}}}, [f"file_hash {HEX[:32]}"]),
        ({"mailbox": "Bob@example.com"}, ["mailbox bob@example.com"]),
        ({"message": "login of user bob from 192.0.2.7"}, ["user bob", "ip 192.0.2.7"]),
        ({"ips": ["192.0.2.7", "192.0.2.8"]}, ["ip 192.0.2.7", "ip 192.0.2.8"]),
    ],
)
def test_the_name_of_a_field_and_its_value_tell_what_it_is(record, expected):
    assert found(record) == expected


@pytest.mark.parametrize(
    "record",
    [
        {"tls": {"ja3": {"hash": HEX[:32]}}},
        {"trace_id": HEX[:32], "agent": {"version": "1.2.3.4"}},
        {"user": {"name": "-"}, "hostname": "N/A"},
        {"count": 5, "ok": True, "nothing": None, "names": []},
    ],
)
def test_what_is_no_entity_is_left_out(record):
    assert found(record) == []


def test_a_record_that_is_too_deep_is_read_as_far_as_the_limit_and_that_is_said():
    record = {"src_ip": "192.0.2.7", "more": {}}
    inner = record["more"]
    for _ in range(2_000):
        inner["more"] = {}
        inner = inner["more"]
    observables = find_in_record(record)
    assert [one.value for one in observables.entities] == ["192.0.2.7"]
    assert not observables.complete


def test_no_more_are_given_than_asked_for():
    observables = find_in_record({"ips": ["192.0.2.1", "192.0.2.2", "192.0.2.3"]}, limit=2)
    assert len(observables.entities) == 2
    assert not observables.complete


KEYS = st.text(max_size=5) | st.sampled_from(["user", "host.name", "Image", "url", "hash", "name"])
RECORDS = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(KEYS, RECORDS, max_size=4))
def test_no_record_makes_it_raise(record):
    find_in_record(record)
