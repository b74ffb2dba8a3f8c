"""Names of accounts, machines and files in Microsoft products."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin import Entity, EntityKind
from tocsin_connectors.siem.microsoft.mapping import (
    parse_entity,
    parse_file,
    parse_machine,
    parse_user,
)

TEXT = st.none() | st.text(min_size=1).map(str.strip).filter(len)  # as records are read


@pytest.mark.parametrize(
    ("parts", "names"),
    [
        (("ann", None, None), {"ann"}),
        (("ann", None, "ann@example.com"), {"ann@example.com"}),
        (("ann", "EXAMPLE", None), {"EXAMPLE\\ann"}),
        (("ann", "EXAMPLE", "ann@example.com"), {"EXAMPLE\\ann", "ann@example.com"}),
        (("ann", "EXAMPLE", "ann"), {"EXAMPLE\\ann"}),
        (("ann@example.com", "EXAMPLE", "ann@example.com"), {"ann@example.com"}),
        (("OTHER\\ann", "EXAMPLE", None), {"OTHER\\ann"}),
        ((None, "EXAMPLE", "ann@example.com"), {"ann@example.com"}),
        (("-", None, None), set()),
        ((None, None, None), set()),
    ],
)
def test_account_names_of_each_log(parts, names):
    assert {entity.value for entity in parse_user(*parts)} == names


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        (("WEB01", None), "web01"),
        (("WEB01", "example.com"), "web01.example.com"),
        (("web01.example.com", "example.com"), "web01.example.com"),
    ],
)
def test_machines_are_identified_by_full_name(parts, name):
    assert list(parse_machine(*parts)) == [Entity(EntityKind.HOST, name)]


@pytest.mark.parametrize(
    ("parts", "path"),
    [
        ((None, "a.exe"), "a.exe"),
        (("C:\\Temp", "a.exe"), "C:\\Temp\\a.exe"),
        (("C:\\Temp\\", "a.exe"), "C:\\Temp\\a.exe"),
        (("C:\\Temp\\A.exe", "a.exe"), "C:\\Temp\\A.exe"),
        (("/tmp", "a"), "/tmp/a"),
        (("/tmp/a", "a"), "/tmp/a"),
        (("a.exe", "a.exe"), "a.exe"),
    ],
)
def test_files_are_identified_by_path(parts, path):
    assert list(parse_file(*parts)) == [Entity(EntityKind.FILE, path)]


@pytest.mark.parametrize(
    ("value", "kind", "name"),
    [
        ("evil.example.com", EntityKind.DOMAIN, "evil.example.com"),
        ("evil.example.com:8443", EntityKind.DOMAIN, "evil.example.com"),
        ("203.0.113.7:80", EntityKind.IP, "203.0.113.7"),
        ("2001:db8::7", EntityKind.IP, "2001:db8::7"),
        ("evil.example.com/x", EntityKind.URL, "evil.example.com/x"),
    ],
)
def test_bare_location_in_a_url_is_an_entity(value, kind, name):
    assert list(parse_entity(EntityKind.URL, value)) == [Entity(kind, name)]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (EntityKind.URL, "somewhere"),
        (EntityKind.URL, "ann@example.com"),
        (EntityKind.URL, "two words.example.com"),
        (EntityKind.DOMAIN, "https://evil.example.com/x"),
        (EntityKind.DOMAIN, "evil.example.com:443"),
        (EntityKind.USER, "-\\-"),
        (EntityKind.IP, "somewhere"),
        (EntityKind.HOST, "."),
        (EntityKind.FILE_HASH, "none"),
        (EntityKind.EMAIL, "ann"),
    ],
)
def test_unexpected_forms_name_nothing(kind, value):
    assert list(parse_entity(kind, value)) == []


@given(one=TEXT, other=TEXT, third=TEXT)
def test_any_text_is_accepted(one, other, third):
    for entity in (
        *parse_user(one, other, third),
        *parse_machine(one, other),
        *parse_file(one, other),
    ):
        assert entity.value
