"""Shared vocabulary."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin import Entity, EntityKind, Event, EventType, Severity


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


def told_of(external_id="7", provider="cloud", host="tocsin.example.com", number=7) -> Event:
    return Event(
        id="evt_1",
        event_type=EventType.INCIDENT_ALERT,
        timestamp=datetime(2026, 11, 21, tzinfo=UTC),
        data={"url": f"https://{host}/incidents/{number}"},
        subject=f"incident:{number}",
        context={"incident": {"provider": provider, "external_id": external_id}},
    )


def test_the_key_of_an_incident_is_that_of_the_siems_own():
    assert told_of(number=7).key == told_of(number=9).key
    others = {told_of("8").key, told_of(provider="edge").key, told_of(host="b.example.com").key}
    assert told_of().key not in others
    assert len(others) == 3


def test_the_key_of_what_is_no_incident_is_its_subject():
    assert replace(told_of(), subject="schedule:sch_1", context={}).key == "schedule:sch_1"


@pytest.mark.parametrize(
    ("risk", "severity"),
    [(100, "Critical"), (60, "High"), (59.9, "Medium"), (0.5, "Low"), (0.0, "Informational")],
)
def test_a_report_is_as_bad_as_its_score(risk, severity):
    event = replace(told_of(), event_type=EventType.INVESTIGATION_COMPLETED)
    assert replace(event, data={"risk_score": risk}).severity == severity


def test_what_says_nothing_of_its_severity_is_medium_and_a_disabled_schedule_high():
    assert replace(told_of(), data={}).severity is Severity.MEDIUM
    disabled = replace(told_of(), event_type=EventType.SCHEDULE_DISABLED)
    assert disabled.severity is Severity.HIGH
