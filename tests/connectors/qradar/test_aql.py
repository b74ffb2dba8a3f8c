"""AQL queries: external values are always quoted."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin import Entity, EntityKind, Refused, Window
from tocsin_connectors.siem.qradar import aql

from .reading import TEXT, BadQueryError, query

START = datetime(2026, 11, 20, 9, tzinfo=UTC)
WINDOW = Window(START, START + timedelta(hours=1))
HOSTILE = (
    "a' OR '1'='1",
    "a\\' OR 1=1 --",
    "a'' OR ''='",
    'a" OR "1"="1',
    "a%' LAST 365 DAYS",
    "a) OR (1=1",
    "a\n;\tSELECT * FROM flows",
    "a\0b",
    "_a_%",
    "O\N{RIGHT SINGLE QUOTATION MARK}Brien \N{GRINNING FACE}",
)
VALUES = st.text(min_size=1, max_size=60) | st.sampled_from(HOSTILE)


def has_letter(value: str) -> bool:
    return re.search("[A-Za-z0-9]", value) is not None


def about(value, kind=EntityKind.USER, properties=()):
    return aql.build_entity_query(Entity(kind, value), properties, properties, WINDOW, 5)


def shape(words: str) -> str:
    """Return a query with its texts taken out."""
    return re.sub(TEXT, "TEXT", words)


@given(VALUES.filter(has_letter))
def test_values_cannot_change_a_query(value):
    asked = about(value)
    assert shape(asked) == shape(about("ann"))
    assert asked.count("'") == 2
    assert not set(asked) & set("\\\n\t\0;")


@given(VALUES.filter(has_letter))
def test_pattern_matches_its_value(value):
    assert query(about(value)).finds({"username": Entity(EntityKind.USER, value).value.upper()})


def test_extra_pattern_matches_are_filtered():
    assert query(about("O'Brien")).finds({"username": "OxxBrien"})


@given(st.text(max_size=20).filter(lambda item: not has_letter(item)))
def test_values_without_letters_are_refused(value):
    with pytest.raises(Refused, match="no letter or digit"):
        about(value)


@given(st.ip_addresses())
def test_addresses_are_searched_in_fields_of_their_ip_version(given_address):
    address = ip_address(Entity(EntityKind.IP, str(given_address)).value)
    asked = about(str(address), EntityKind.IP)
    for name in aql.ADDRESS_FIELDS[address.version]:
        assert query(asked).finds({name: str(address)})
    others = aql.ADDRESS_FIELDS[6 if address.version == 4 else 4]
    assert not any(f"{name} =" in asked for name in others)


@given(VALUES)
def test_invalid_addresses_have_no_query(value):
    try:
        ip_address(value)
    except ValueError:
        with pytest.raises(ValueError, match="no field"):
            about(value, EntityKind.IP)


def test_custom_properties_are_quoted_columns():
    asked = about("AB" * 32, EntityKind.FILE_HASH, ["SHA256 Hash"])
    assert '"SHA256 Hash" ILIKE' in asked
    assert query(asked).columns[-1] == "SHA256 Hash"
    with pytest.raises(ValueError, match="cannot be quoted"):
        aql.quote_column('a" OR "b')


def test_query_has_two_time_bounds():
    asked = query(about("ann"))
    first, end = (int(item.timestamp() * 1000) for item in (WINDOW.start, WINDOW.end))
    assert (asked.start, asked.end, asked.limit) == (first, end, 5)
    start, stop = re.findall(r"START (\d+) STOP (\d+)", about("ann"))[0]
    assert int(start) < first
    assert int(stop) > end


def test_test_parser_rejects_other_syntax():
    for words in ("SELECT * FROM flows", about("ann").replace("ILIKE", "MATCHES")):
        with pytest.raises(BadQueryError):
            query(words)
