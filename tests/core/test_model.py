"""The vocabulary."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin import Entity, EntityKind, Severity


def test_severities_are_ordered():
    words = ["Informational", "Low", "Medium", "High", "Critical"]
    assert [severity.value for severity in sorted(Severity, key=lambda s: s.rank)] == words


@given(st.sampled_from(Severity), st.sampled_from([str.lower, str.upper, str.title]))
def test_words_are_read_in_any_case(severity, change):
    assert Severity.parse(change(severity.value)) is severity


def test_an_unknown_word_names_the_valid_ones():
    with pytest.raises(ValueError, match="Informational, Low, Medium, High, Critical"):
        Severity.parse("urgent")


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        (EntityKind.IP, "2001:DB8::0001", "2001:db8::1"),
        (EntityKind.IP, "::ffff:192.0.2.1", "192.0.2.1"),
        (EntityKind.IP, "fe80::1%eth0", "fe80::1"),
        (EntityKind.DOMAIN, "WWW.Example.ORG.", "www.example.org"),
        (EntityKind.DOMAIN, "bücher.example", "xn--bcher-kva.example"),
        (EntityKind.HOST, "WEB01.", "web01"),
        (EntityKind.URL, "HTTP://Evil.example/A?b=C", "http://evil.example/A?b=C"),
        (EntityKind.FILE_HASH, "ABCDEF", "abcdef"),
        (EntityKind.EMAIL, " A@Example.org ", "a@example.org"),
        (EntityKind.CVE, "cve_2021_41773", "CVE-2021-41773"),
    ],
)
def test_equal_things_are_spelt_equally(kind, one, other):
    assert Entity(kind, one) == Entity(kind, other)


def test_what_may_differ_by_case_is_left_alone():
    assert Entity(EntityKind.FILE, "/Tmp/A").value == "/Tmp/A"
    assert Entity(EntityKind.URL, "http://a:Secret@b/").value == "http://a:Secret@b/"


@given(st.sampled_from(EntityKind), st.text())
def test_canonical_values_are_canonical(kind, value):
    once = Entity(kind, value)
    assert Entity(kind, once.value) == once
