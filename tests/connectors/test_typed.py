"""What a value under a name of a kind is taken for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin import Entity, EntityKind
from tocsin_connectors.siem.entities import parse_entities

MD5, SHA256 = "d" * 32, "e" * 64


@pytest.mark.parametrize(
    ("kind", "value", "named"),
    [
        (EntityKind.IP, " 203.0.113.7 ", [(EntityKind.IP, "203.0.113.7")]),
        (EntityKind.HOST, "203.0.113.7", [(EntityKind.IP, "203.0.113.7")]),
        (EntityKind.HOST, "web-1", [(EntityKind.HOST, "web-1")]),
        (EntityKind.USER, "unknown.person", [(EntityKind.USER, "unknown.person")]),
        (EntityKind.CVE, "see cve-2026-12345", [(EntityKind.CVE, "CVE-2026-12345")]),
        (EntityKind.EMAIL, "Ann <ann@example.com>", [(EntityKind.EMAIL, "ann@example.com")]),
        (EntityKind.EMAIL, "ann", []),
        (EntityKind.FILE_HASH, "abc123", []),
        (EntityKind.USER, "  ", []),
    ],
)
def test_a_value_names_what_it_can(kind, value, named):
    assert list(parse_entities(kind, value)) == [Entity(kind, item) for kind, item in named]


def test_every_hash_of_a_list_is_one():
    assert list(parse_entities(EntityKind.FILE_HASH, f"MD5={MD5},SHA256={SHA256}")) == [
        Entity(EntityKind.FILE_HASH, MD5),
        Entity(EntityKind.FILE_HASH, SHA256),
    ]


@pytest.mark.parametrize("kind", EntityKind)
@pytest.mark.parametrize("value", ["unknown", " Unknown", "-", "N/A", "(null)", ""])
def test_what_stands_for_nothing_names_nothing(kind, value):
    assert list(parse_entities(kind, value)) == []


@given(st.sampled_from(EntityKind), st.text())
def test_any_text_can_be_asked(kind, value):
    assert all(entity.value for entity in parse_entities(kind, value))
