"""Interpretation of messages."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from investigator_world import NOW, domain, host, ip, user

import tocsin.web
from tocsin import Severity, Window
from tocsin_plugins.investigator.interpretation import FollowUp, QueryIntent, interpret_messages
from tocsin_plugins.investigator.interpretation.time_ranges import find_range


def day(number: int, hour: int = 0, minute: int = 0) -> datetime:
    return datetime(2026, 11, number, hour, minute, tzinfo=UTC)


def scope(*messages: str):
    return interpret_messages(messages, NOW)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("logons in the last 24 hours", NOW - timedelta(hours=24), NOW),
        ("past week", NOW - timedelta(weeks=1), NOW),
        ("last 30 days", NOW - timedelta(days=30), NOW),
        ("last 90m", NOW - timedelta(minutes=90), NOW),
        ("previous month", NOW - timedelta(days=30), NOW),
        ("since yesterday", day(7), NOW),
        ("since 3 hours ago", NOW - timedelta(hours=3), NOW),
        ("since 2026-11-05T10:30Z", day(5, 10, 30), NOW),
        ("since 2026-11-05 10:30+02:00", day(5, 8, 30), NOW),
        ("after 5 November", day(5), NOW),
        ("since monday", day(2), NOW),
        ("since last sunday", day(1), NOW),
        ("between 2026-11-01 and 2026-11-03", day(1), day(4)),
        ("from 1 Nov to 3 Nov 2026", day(1), day(4)),
        ("2026-11-01/2026-11-03", day(1), day(4)),
        ("on 3 November", day(3), day(4)),
        ("on November 3rd, 2026", day(3), day(4)),
        ("on 9 November", datetime(2025, 11, 9, tzinfo=UTC), datetime(2025, 11, 10, tzinfo=UTC)),
        ("today", day(8), NOW),
        ("yesterday", day(7), day(8)),
        ("window PT12H please", NOW - timedelta(hours=12), NOW),
        ("P2D", NOW - timedelta(days=2), NOW),
        ("before 2026-11-05", day(5) - timedelta(days=7), day(5)),
        ("until 2026-11-05", day(6) - timedelta(days=7), day(6)),
    ],
)
def test_a_time_range_is_read(text, start, end):
    assert find_range(text, NOW).window == Window(start, end)


@pytest.mark.parametrize(
    "text",
    ["on 2026-02-31", "between 2026-11-05 and 2026-11-01", "since 2031-01-01", "last 99999 weeks"],
)
def test_a_range_that_makes_no_sense_has_no_window(text):
    assert find_range(text, NOW).window is None


@pytest.mark.parametrize(
    "text", ["who is marketing 12?", "203.0.113.5", "incident 12", "CVE-2021-44228", "may I ask"]
)
def test_what_is_no_time_is_none(text):
    assert find_range(text, NOW) is None


def test_a_doubtful_time_is_said_and_not_used():
    assert scope("events since 2031-01-01").window is None
    assert "2031" in scope("events since 2031-01-01").doubts[0]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("#12", (12,)),
        ("what of incident 12?", (12,)),
        ("INC-12 and inc-7", (7, 12)),
        ("incidents 12, 13 and #14", (12, 13, 14)),
        ("incident number 5", (5,)),
        ("case 9", (9,)),
        ("see https://example.com/#12", ()),
        ("incidents on 10.0.0.5", ()),
        ("incident 10.0.0.5", ()),
        ("abc#12", ()),
        ("incidents 3-6", (3, 4, 5, 6)),
        ("incidents 3 to 5 and 9", (3, 4, 5, 9)),
        ("1, 2 and 5", (1, 2, 5)),
        ("3-5", (3, 4, 5)),
        ("incident 2026-11-01", ()),
        ("12", ()),
    ],
)
def test_incident_numbers_are_read(text, numbers):
    assert scope(text).incidents == numbers


def test_entities_are_read_also_in_plain_words():
    found = scope("did user alice on host web-1 reach 203.0.113.5 or evil.example.com?")
    assert {user("alice"), host("web-1"), ip("203.0.113.5")} <= set(found.entities)
    assert domain("evil.example.com") in found.entities


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        ("high severity incidents", Severity.HIGH),
        ("severity:critical", Severity.CRITICAL),
        ("alerts of at least medium", Severity.MEDIUM),
        ("low or above", Severity.LOW),
        ("the high road", None),
    ],
)
def test_severities_are_read(text, severity):
    assert scope(text).severity is severity


@pytest.mark.parametrize(
    ("text", "intent"),
    [
        ("what happened?", QueryIntent.WHAT_HAPPENED),
        ("is it a false positive?", QueryIntent.IS_MALICIOUS),
        ("who else was hit?", QueryIntent.WHO_ELSE),
        ("when was it first seen?", QueryIntent.FIRST_SEEN),
        ("hunt for it", QueryIntent.HUNT),
    ],
)
def test_intents_are_read(text, intent):
    assert intent in scope(text).intents


def test_words_count_where_nothing_is_named():
    assert scope("strange logons from the vpn").words == ("strange", "logons", "vpn")
    assert scope("strange logons from 203.0.113.5").words == ()


@pytest.mark.parametrize("text", ["", "  ", "hello?", "what happened?", "¿¡…", "please help me"])
def test_an_unclear_query_is_empty(text):
    assert scope(text).is_empty


def test_follow_ups_join_the_scope():
    found = scope("incident 1", "and incident 3", "also 203.0.113.5, last 30 days")
    assert found.incidents == (1, 3)
    assert found.entities == (ip("203.0.113.5"),)
    assert found.window == Window(NOW - timedelta(days=30), NOW)


def test_only_narrows_and_ignore_leaves_out():
    found = scope("incidents 1, 2 and 3", "only incident 3", "ignore 10.0.0.5")
    assert found.incidents == (3,)
    assert found.ignored_entities == {ip("10.0.0.5")}
    assert scope("ignore 10.0.0.5", "look at 10.0.0.5").entities == (ip("10.0.0.5"),)


def test_one_message_can_leave_out_and_add():
    found = scope("incident 1", "ignore 10.0.0.5 but look at 10.0.0.6")
    assert found.ignored_entities == {ip("10.0.0.5")}
    assert found.entities == (ip("10.0.0.6"),)


def test_wishes_are_those_of_the_last_message():
    found = scope("incident 1", "go deeper", "why is the score 60?")
    assert found.deeper == 1
    assert found.wishes == {FollowUp.EXPLAIN_SCORE}
    assert scope("incident 1", "show the timeline").wishes == {FollowUp.SHOW_TIMELINE}


def test_every_interpretation_is_noted():
    notes = " ".join(scope("incident 12 and 203.0.113.5 in the last 24 hours").notes)
    assert "incident 12" in notes
    assert "203.0.113.5" in notes
    assert "last 24 hours" in notes


@given(st.lists(st.text(max_size=300), max_size=4))
def test_any_text_is_understood_somehow(messages):
    found = interpret_messages(messages, NOW)
    assert found.window is None or found.window.start < found.window.end <= NOW


def test_a_very_long_range_is_cut_and_said():
    found = scope("incidents 1-1000000")
    assert len(found.incidents) == 1_000
    assert "only the first 1,000 numbers" in found.doubts[0]


def test_the_question_that_the_console_suggests_is_understood():
    template = Path(tocsin.web.__path__[0]) / "console/templates/incident.html.j2"
    [words] = re.findall(r'"([^"]+ incident )" ~ incident.number', template.read_text("utf-8"))
    understood = scope(f"{words}1?")
    assert (understood.incidents, understood.doubts) == ((1,), ())
