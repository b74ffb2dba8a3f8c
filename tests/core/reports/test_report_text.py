"""Reports as plain text."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from report_samples import brute_force, empty, hostile, huge, texts
from tocsin.reports import session_document_text, to_plain_text, to_text


def test_a_few_lines_say_what_it_is_and_what_to_do():
    assert to_text(brute_force()).splitlines() == [
        "SSH brute force from 203.0.113.9 on web-1, followed by a sign-in",
        "Verdict: malicious (high confidence). Risk score: 82.5 of 100.",
        "203.0.113.9 tried 48 passwords on web-1[.]corp[.]example within three minutes."
        " 17 minutes later the user deploy signed in from the same address."
        " The session fetched a script from cdn[.]evil[.]example.",
        "Findings:",
        "- Critical: A sign-in followed many failed ones from the same address",
        "- High: 203.0.113.9 stands on a watch list",
        "- Medium: cdn[.]evil[.]example was never seen here before",
        "Recommended actions:",
        "- Urgent: Lock the account deploy and end its sessions.",
        "- Urgent: Isolate web-1[.]corp[.]example and keep its memory.",
        "- Allow SSH with keys only.",
    ]


def test_the_worst_findings_come_first():
    report = replace(brute_force(), findings=brute_force().findings[::-1])
    assert to_text(report) == to_text(brute_force())


def test_nothing_is_said_of_what_there_is_not():
    assert "Findings" not in to_text(empty())


def test_what_there_is_more_of_is_counted():
    assert "\n- and 4,995 more\n" in to_text(huge())


@pytest.mark.parametrize(
    "make", [huge, lambda: hostile("A" * 9_000), lambda: hostile("a.bb " * 2_000)]
)
def test_it_fits_a_comment(make):
    assert len(to_text(make())) <= 2_000


@given(texts)
def test_whatever_the_text_it_has_as_many_lines(text):
    assert len(to_text(hostile(text)).splitlines()) == 7


def test_the_search_goes_through_every_sentence_as_it_is():
    lines = session_document_text(brute_force()).splitlines()
    assert lines[0] == brute_force().title
    assert "What is incident 7 about, and did they get in?" in lines
    assert "The session fetched a script from cdn.evil.example." in lines
    assert "curl fetched http://cdn.evil.example/x.sh." in lines
    assert "http://cdn.evil.example/x.sh" in lines
    assert "T1105" in lines
    assert "Lock the account deploy and end its sessions." in lines


def test_the_search_finds_every_text_of_a_report():
    assert session_document_text(hostile("<b>")).splitlines().count("<b>") == 15


def test_a_complete_report_is_plain_text():
    lines = to_plain_text(brute_force()).splitlines()
    assert lines[0] == "SSH brute force from 203.0.113.9 on web-1, followed by a sign-in"
    assert {"Verdict: malicious (high confidence)", "Findings", "Recommended actions"} <= set(lines)
    assert "- Urgent Lock the account deploy and end its sessions." in " ".join(lines)
    assert not [line for line in lines if "\\" in line or "**" in line or "|" in line]
    assert max(map(len, lines)) <= 80
