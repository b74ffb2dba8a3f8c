"""Mapping of log rows to events."""

from __future__ import annotations

import contextlib
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.connectors.json_values import JSON

from tocsin import Entity, EntityKind, RelationType, SiemEvent
from tocsin_connectors.siem.microsoft.search import build_event
from tocsin_connectors.siem.sentinel.entities import find_entities
from tocsin_connectors.siem.sentinel.tables import list_tables

TABLES = {table.name: table for table in list_tables({})}
ATTACKER = Entity(EntityKind.IP, "203.0.113.7")
ALICE = Entity(EntityKind.USER, "EXAMPLE\\alice")
WEB = Entity(EntityKind.HOST, "web01.example.com")
LOGON = {
    "DeviceName": "web01.example.com",
    "ActionType": "LogonSuccess",
    "LogonType": "RemoteInteractive",
    "AccountDomain": "EXAMPLE",
    "AccountName": "alice",
    "RemoteIP": "203.0.113.7",
}


def event(table: str, record: object, asked: Entity = ATTACKER, at: str = "") -> SiemEvent:
    row = {
        "EventTime": at or "2026-11-20T09:19:51.1234567Z",
        "EventTable": table,
        "EventRecord": record,
    }
    return build_event(row, TABLES, asked, find_entities)


def told(found: SiemEvent) -> set[tuple[Entity, RelationType, Entity]]:
    return {(relation.source, relation.type, relation.target) for relation in found.relations}


def test_a_row_is_an_event():
    found = event("DeviceLogonEvents", LOGON)
    assert found.occurred_at == datetime(2026, 11, 20, 9, 19, 51, 123456, tzinfo=UTC)
    assert found.summary == (
        "logon: LogonSuccess, RemoteInteractive, alice, 203.0.113.7, web01.example.com"
    )
    assert set(found.entities) == {ATTACKER, ALICE, WEB}
    assert found.fields["table"] == "DeviceLogonEvents"
    assert found.fields["LogonType"] == "RemoteInteractive"


def test_who_got_in_has_logged_on_and_who_failed_has_not():
    entered = told(event("DeviceLogonEvents", LOGON))
    failed = told(event("DeviceLogonEvents", {**LOGON, "ActionType": "LogonFailed"}))
    assert failed == {(ATTACKER, RelationType.CONNECTED_TO, WEB)}
    assert entered == failed | {(ALICE, RelationType.LOGGED_ON_TO, WEB)}


def test_a_blocked_connection_relates_nobody():
    made = {"DeviceName": "web01.example.com", "RemoteIP": "203.0.113.7"}
    for action, relations in (("ConnectionSuccess", 1), ("ConnectionFailed", 0)):
        found = event("DeviceNetworkEvents", {**made, "ActionType": action})
        assert len(found.relations) == relations


def test_a_record_may_be_json_in_a_text():
    assert event("DeviceLogonEvents", json.dumps(LOGON)) == event("DeviceLogonEvents", LOGON)


@pytest.mark.parametrize("record", ["", "[", "[]", "7", None, 7, []])
def test_what_is_no_record_is_a_value_error(record):
    with pytest.raises(
        ValueError, match=r"not an object|empty document|end of data|EOF|unexpected"
    ):
        event("DeviceLogonEvents", record)


def test_what_does_not_name_what_was_asked_for_is_a_value_error():
    with pytest.raises(ValueError, match="does not name"):
        event("DeviceLogonEvents", {**LOGON, "RemoteIP": "203.0.113.70"})
    with pytest.raises(ValueError, match="no table"):
        event("Secrets", LOGON)
    with pytest.raises(ValueError, match="is not in ISO 8601 format"):
        event("DeviceLogonEvents", LOGON, at="noon")


def test_an_entity_is_spelt_as_it_was_asked_for():
    asked = Entity(EntityKind.USER, "example\\ALICE")
    found = event("DeviceLogonEvents", LOGON, asked)
    assert asked in found.entities
    assert ALICE not in found.entities
    assert (asked, RelationType.LOGGED_ON_TO, WEB) in told(found)


def test_a_connection_to_a_url_or_a_name_is_either():
    asked = Entity(EntityKind.HOST, "web01.example.com")
    made = {"DeviceName": "web01.example.com", "ActionType": "ConnectionSuccess"}
    url = event("DeviceNetworkEvents", {**made, "RemoteUrl": "https://evil.example.com/x"}, asked)
    name = event("DeviceNetworkEvents", {**made, "RemoteUrl": "evil.example.com"}, asked)
    assert Entity(EntityKind.URL, "https://evil.example.com/x") in url.entities
    assert Entity(EntityKind.DOMAIN, "evil.example.com") in name.entities
    assert {entity.kind for entity in name.entities} == {EntityKind.HOST, EntityKind.DOMAIN}


def test_nobody_of_windows_is_no_user():
    asked = Entity(EntityKind.HOST, "web01")
    record = {"Computer": "web01", "Account": "-\\-", "TargetAccount": "-", "IpAddress": "-"}
    assert event("SecurityEvent", record, asked).entities == (asked,)


def test_an_alert_of_the_logs_names_what_its_entities_name():
    entities = [
        {"$id": "2", "HostName": "web01", "DnsDomain": "example.com", "Type": "host"},
        {"$id": "3", "Address": "203.0.113.7", "Type": "ip"},
        {
            "$id": "4",
            "Host": {"$ref": "2"},
            "Name": "alice",
            "NTDomain": "EXAMPLE",
            "Type": "account",
        },
    ]
    record = {"AlertName": "Password spray", "Entities": json.dumps(entities)}
    found = event("SecurityAlert", record)
    assert found.summary == "alert: Password spray"
    assert set(found.entities) == {ATTACKER, ALICE, WEB}


def test_the_id_of_a_row_is_its_own_or_that_of_its_content():
    assert event("SigninLogs", {"IPAddress": "203.0.113.7", "_ItemId": "7-8"}).external_id == "7-8"
    one, same = (event("DeviceLogonEvents", LOGON).external_id for _ in range(2))
    other = event("DeviceLogonEvents", {**LOGON, "LogonType": "Network"}).external_id
    assert one == same != other


@given(
    table=st.sampled_from(sorted(TABLES)),
    record=st.dictionaries(st.sampled_from(["RemoteIP", "IPAddress", "Entities", *LOGON]), JSON),
)
def test_any_column_may_have_any_type(table, record):
    with contextlib.suppress(ValueError):  # a row may be passed over, and nothing else
        found = event(table, {**record, "SrcIpAddr": "203.0.113.7", "SourceIP": "203.0.113.7"})
        assert ATTACKER in found.entities
        assert len(found.summary.splitlines()) == 1
