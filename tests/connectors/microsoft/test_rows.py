"""Mapping of log rows to events."""

from __future__ import annotations

import contextlib
import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.connectors.json_values import JSON

from tocsin import Entity, EntityKind, RelationType, SiemEvent, Window
from tocsin_connectors.siem.microsoft.kql import build_search_query
from tocsin_connectors.siem.microsoft.search import build_event
from tocsin_connectors.siem.microsoft.tables import HUNTING_TABLES
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


def test_row_becomes_event():
    found = event("DeviceLogonEvents", LOGON)
    assert found.occurred_at == datetime(2026, 11, 20, 9, 19, 51, 123456, tzinfo=UTC)
    assert found.summary == (
        "logon: LogonSuccess, RemoteInteractive, alice, 203.0.113.7, web01.example.com"
    )
    assert set(found.entities) == {ATTACKER, ALICE, WEB}
    assert found.fields["table"] == "DeviceLogonEvents"
    assert found.fields["LogonType"] == "RemoteInteractive"


# https://learn.microsoft.com/defender-xdr/advanced-hunting-schema-tables
DIGEST = "9f86d081884c7d659a2feaa0c55ad015"


@pytest.mark.parametrize(
    ("table", "record", "asked"),
    [
        ("AlertEvidence", {"RemoteIP": "203.0.113.7"}, ATTACKER),
        ("AlertEvidence", {"SHA256": "9f" * 32}, Entity(EntityKind.FILE_HASH, "9f" * 32)),
        ("DeviceRegistryEvents", {"DeviceName": "web01.example.com"}, WEB),
        ("DeviceImageLoadEvents", {"SHA1": "9f" * 20}, Entity(EntityKind.FILE_HASH, "9f" * 20)),
        ("DeviceInfo", {"PublicIP": "203.0.113.7"}, ATTACKER),
        (
            "DeviceInfo",
            {"LoggedOnUsers": '[{"UserName": "alice", "DomainName": "EXAMPLE"}]'},
            ALICE,
        ),
        (
            "EmailPostDeliveryEvents",
            {"RecipientEmailAddress": "ann@example.com"},
            Entity(EntityKind.MAILBOX, "ann@example.com"),
        ),
        (
            "MessageEvents",
            {"RecipientDetails": [{"RecipientSmtpAddress": "ann@example.com"}]},
            Entity(EntityKind.EMAIL, "ann@example.com"),
        ),
        (
            "DeviceNetworkEvents",
            {"InitiatingProcessMD5": DIGEST},
            Entity(EntityKind.FILE_HASH, DIGEST),
        ),
        (
            "DeviceProcessEvents",
            {"InitiatingProcessParentFileName": "winword.exe"},
            Entity(EntityKind.PROCESS, "winword.exe"),
        ),
        (
            "DeviceFileEvents",
            {"InitiatingProcessSHA256": "9f" * 32},
            Entity(EntityKind.FILE_HASH, "9f" * 32),
        ),
    ],
)
def test_tables_of_hunting_name_the_queried_entity(table, record, asked):
    assert asked in event(table, record, asked).entities
    now = datetime(2026, 11, 20, tzinfo=UTC)
    window = Window(now - timedelta(hours=1), now)
    [one] = [found for found in HUNTING_TABLES if found.name == table]
    query = build_search_query([one], "Timestamp", asked, window, 10)
    assert all(f'column_ifexists("{column}", "")' in query for column in record)


def test_only_successful_sign_ins_have_relations():
    entered = told(event("DeviceLogonEvents", LOGON))
    failed = told(event("DeviceLogonEvents", {**LOGON, "ActionType": "LogonFailed"}))
    assert failed == {(ATTACKER, RelationType.CONNECTED_TO, WEB)}
    assert entered == failed | {(ALICE, RelationType.LOGGED_ON_TO, WEB)}


def test_blocked_connection_has_no_relation():
    made = {"DeviceName": "web01.example.com", "RemoteIP": "203.0.113.7"}
    for action, relations in (("ConnectionSuccess", 1), ("ConnectionFailed", 0)):
        found = event("DeviceNetworkEvents", {**made, "ActionType": action})
        assert len(found.relations) == relations


def test_records_in_json_strings_are_decoded():
    assert event("DeviceLogonEvents", json.dumps(LOGON)) == event("DeviceLogonEvents", LOGON)


@pytest.mark.parametrize("record", ["", "[", "[]", "7", None, 7, []])
def test_invalid_record_is_a_value_error(record):
    with pytest.raises(
        ValueError, match=r"not an object|empty document|end of data|EOF|unexpected"
    ):
        event("DeviceLogonEvents", record)


def test_row_without_the_entity_is_a_value_error():
    with pytest.raises(ValueError, match="does not contain"):
        event("DeviceLogonEvents", {**LOGON, "RemoteIP": "203.0.113.70"})
    with pytest.raises(ValueError, match="is not a table"):
        event("Secrets", LOGON)
    with pytest.raises(ValueError, match="is not in ISO 8601 format"):
        event("DeviceLogonEvents", LOGON, at="noon")


def test_entity_keeps_the_queried_spelling():
    asked = Entity(EntityKind.USER, "example\\ALICE")
    found = event("DeviceLogonEvents", LOGON, asked)
    assert asked in found.entities
    assert ALICE not in found.entities
    assert (asked, RelationType.LOGGED_ON_TO, WEB) in told(found)


def test_connection_target_is_url_or_name():
    asked = Entity(EntityKind.HOST, "web01.example.com")
    made = {"DeviceName": "web01.example.com", "ActionType": "ConnectionSuccess"}
    url = event("DeviceNetworkEvents", {**made, "RemoteUrl": "https://evil.example.com/x"}, asked)
    name = event("DeviceNetworkEvents", {**made, "RemoteUrl": "evil.example.com"}, asked)
    assert Entity(EntityKind.URL, "https://evil.example.com/x") in url.entities
    assert Entity(EntityKind.DOMAIN, "evil.example.com") in name.entities
    assert {entity.kind for entity in name.entities} == {EntityKind.HOST, EntityKind.DOMAIN}


def test_windows_placeholder_accounts_are_no_users():
    asked = Entity(EntityKind.HOST, "web01")
    record = {"Computer": "web01", "Account": "-\\-", "TargetAccount": "-", "IpAddress": "-"}
    assert event("SecurityEvent", record, asked).entities == (asked,)


def test_alert_row_has_the_entities_of_its_alert():
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


def test_row_id_is_its_own_or_a_content_hash():
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
