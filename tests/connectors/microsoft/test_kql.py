"""KQL queries: names of entities are always quoted values."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.connectors.microsoft.kql_reader import BadQuery, read, text_of, tokens_of

from tocsin import Entity, EntityKind, Window
from tocsin_connectors.siem.microsoft.kql import build_search_query, format_interval, quote_text
from tocsin_connectors.siem.microsoft.search import list_entity_kinds
from tocsin_connectors.siem.microsoft.tables import HUNTING_TABLES
from tocsin_connectors.siem.sentinel.tables import list_tables

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
WINDOW = Window(NOON - timedelta(hours=1), NOON)
KINDS = sorted(list_entity_kinds(HUNTING_TABLES))
BREAKING = st.text(st.sampled_from("\"'\\\n\r\t@h`~|;(){}[]/*-=<>! \x00\u2028\u202e\ud83dux0a"))
TEXT = st.text() | BREAKING | st.text(st.characters())


def query(value: str, kind: EntityKind = EntityKind.PROCESS) -> str:
    return build_search_query(HUNTING_TABLES, "Timestamp", Entity(kind, value), WINDOW, 7)


@given(text=TEXT)
def test_literal_is_one_token(text):
    [token] = tokens_of(quote_text(text))
    assert token.kind == "string"
    assert token.text.isprintable()
    assert text_of(token) == text.encode("utf-16", "surrogatepass").decode(
        "utf-16", "surrogatepass"
    )


@given(value=TEXT, kind=st.sampled_from(KINDS))
def test_values_cannot_change_a_query(value, kind):
    usual, odd = (tokens_of(query(name, kind)) for name in ("x", value))
    assert text_of(odd[3]) == Entity(kind, value).value
    assert odd[:3] + odd[4:] == usual[:3] + usual[4:]


@given(value=TEXT)
def test_query_has_the_expected_form(value):
    asked = read(query(value))
    assert asked.wanted == Entity(EntityKind.PROCESS, value).value
    assert (asked.window, asked.limit) == (WINDOW, 7)
    assert {leg.time for leg in asked.legs} == {"Timestamp"}


@pytest.mark.parametrize(
    "value", ['" | union SecurityEvent //', "\\", '\\" or true', "a\n| take 9"]
)
def test_injection_attempts_stay_values(value):
    assert read(query(value)).wanted == value.strip()


def test_unquoted_value_is_detected():
    with pytest.raises(BadQuery):
        read(query("x").replace('"x"', '"x" or true'))


def test_searchable_kinds_are_those_of_the_columns():
    assert set(EntityKind) - list_entity_kinds(list_tables({})) == {EntityKind.CVE}
    assert set(EntityKind) - set(KINDS) == {EntityKind.CVE, EntityKind.CLOUD_RESOURCE}


def test_only_tables_with_the_entity_kind_are_searched():
    asked = read(query("evil@example.com", EntityKind.EMAIL))
    assert {leg.table for leg in asked.legs} == {
        "EmailAttachmentInfo",
        "EmailEvents",
        "EmailPostDeliveryEvents",
        "MessageEvents",
    }
    assert query("CVE-2026-1", EntityKind.CVE) == ""


def test_accounts_are_matched_with_their_domain():
    [leg] = [
        leg for leg in read(query("x", EntityKind.USER)).legs if leg.table == "DeviceLogonEvents"
    ]
    assert leg.columns == (("AccountUpn",), ("AccountDomain", "AccountName"))


def test_alerts_are_found_by_their_entities():
    asked = build_search_query(
        list_tables({}), "TimeGenerated", Entity(EntityKind.IP, "x"), WINDOW, 7
    )
    [leg] = [leg for leg in read(asked).legs if leg.table == "SecurityAlert"]
    assert (leg.columns, leg.operators) == ((("Entities",),), ("has",))


def test_custom_tables_are_searched():
    own = {"Firewall_CL": {EntityKind.IP: ("src_s", "dst_s")}}
    asked = build_search_query(
        list_tables(own), "TimeGenerated", Entity(EntityKind.IP, "x"), WINDOW, 7
    )
    [leg] = [leg for leg in read(asked).legs if leg.table == "Firewall_CL"]
    assert leg.columns == (("src_s",), ("dst_s",))


def test_a_window_is_an_interval_in_utc():
    assert format_interval(WINDOW) == "2026-11-20T11:00:00.000000Z/2026-11-20T12:00:00.000000Z"
