"""Values, entities and techniques in records."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin import Broken, Entity, EntityKind
from tocsin_connectors.responses import get_page_token
from tocsin_connectors.siem.records import (
    contains_entity,
    filter_techniques,
    find_techniques_in_text,
    parse_entities,
    texts_at,
)

RECORD = {"a": "1", "b": [{"c": ["2", 3, " "]}, {"c": "4"}, "no object"], "d": {"e": {"f": "5"}}}
MD5, SHA256 = "d" * 32, "e" * 64


@pytest.mark.parametrize(
    ("path", "found"),
    [("a", ["1"]), ("b.c", ["2", "4"]), ("d.e.f", ["5"]), ("a.x", []), ("x.y", []), ("d.e", [])],
)
def test_texts_are_found_in_lists(path, found):
    assert texts_at(RECORD, path) == found


@pytest.mark.parametrize("token", ["a", " a b ", "t" * 10_000])
def test_page_tokens_are_returned_unchanged(token):
    assert get_page_token({"after": token}, "after") == token


@pytest.mark.parametrize("answer", [{}, {"after": None}, {"after": ""}])
def test_missing_page_tokens_end_the_pages(answer):
    assert get_page_token(answer, "after") is None


@pytest.mark.parametrize("token", [7, 0, False, ["a"], {}])
def test_invalid_page_tokens_are_broken(token):
    with pytest.raises(Broken, match="`after`"):
        get_page_token({"after": token}, "after")


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
        (EntityKind.HOST, "LOCALHOST", []),
        (EntityKind.DOMAIN, "localhost.localdomain", []),
        (EntityKind.HOST, "localhost-7", [(EntityKind.HOST, "localhost-7")]),
    ],
)
def test_values_are_parsed_by_kind(kind, value, named):
    assert list(parse_entities(kind, value)) == [Entity(kind, item) for kind, item in named]


def test_lists_of_hashes_are_split():
    assert list(parse_entities(EntityKind.FILE_HASH, f"MD5={MD5},SHA256={SHA256}")) == [
        Entity(EntityKind.FILE_HASH, MD5),
        Entity(EntityKind.FILE_HASH, SHA256),
    ]


@pytest.mark.parametrize("kind", EntityKind)
@pytest.mark.parametrize("value", ["unknown", " Unknown", "-", "N/A", "(null)", ""])
def test_placeholders_name_no_entity(kind, value):
    assert list(parse_entities(kind, value)) == []


@given(st.sampled_from(EntityKind), st.text())
def test_any_text_can_be_parsed(kind, value):
    assert all(entity.value for entity in parse_entities(kind, value))


def test_entities_compare_by_kind_without_case():
    asked = Entity(EntityKind.USER, "EXAMPLE\\ann")
    assert contains_entity(
        asked, [Entity(EntityKind.IP, "::1"), Entity(EntityKind.USER, "example\\Ann")]
    )
    assert not contains_entity(asked, [Entity(EntityKind.PROCESS, "EXAMPLE\\ann")])
    assert not contains_entity(asked, [])


def test_only_technique_ids_pass():
    values = ["T1110", "T1110.001", "TA0006", "CST0001", "t1110", "T1110.1", "see T1110", ""]
    assert list(filter_techniques(values)) == ["T1110", "T1110.001"]


def test_technique_ids_are_found_in_text():
    assert find_techniques_in_text("T1110.001, TA0006 and T1021") == ["T1110.001", "T1021"]
