"""Reports as Markdown, read with a CommonMark parser with GitHub's extensions."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given, settings
from linkify_it import LinkifyIt
from markdown_it import MarkdownIt

from full_run import scale_examples
from report_samples import HOSTILE, brute_force, empty, executive, hostile, huge, texts
from tocsin.reports import to_markdown
from tocsin.reports.markdown import escape_markdown
from tocsin.reports.text_format import clean_line, clean_value, defang_links, format_reference

PARSER = MarkdownIt("gfm-like", {"html": True, "linkify": True})
LINKS = LinkifyIt()
TEXT = {"text", "text_special", "code_inline"}


def shape(markdown: str) -> list[str]:
    """What kinds of things a text is made of."""
    kinds = []
    for token in PARSER.parse(markdown):
        inner = [child.type for child in token.children or ()]
        kinds.append(token.type)
        kinds += [
            "text" if kind in TEXT else kind
            for kind, before in zip(inner, ["", *inner], strict=False)
            if kind not in TEXT or before not in TEXT
        ]
    return kinds


def shown(markdown: str) -> list[str]:
    """The text of each heading, paragraph and cell."""
    return [
        "".join(child.content for child in token.children)
        for token in PARSER.parse(markdown)
        if token.type == "inline"
    ]


def headings(markdown: str, tag: str) -> list[str]:
    tokens = PARSER.parse(markdown)
    return [
        "".join(child.content for child in inner.children)
        for token, inner in itertools.pairwise(tokens)
        if token.type == "heading_open" and token.tag == tag
    ]


HARMLESS = shape(to_markdown(hostile("harmless")))


def test_what_comes_first_and_then_the_sections_in_their_order():
    text = to_markdown(brute_force())
    assert text.startswith("# SSH brute force from 203.0.113.9 on web-1, followed by a sign-in\n")
    assert "**Verdict:** malicious (high confidence)\\\n**Risk score:** 82.5 of 100\n" in text
    assert headings(text, "h2") == [
        "Summary",
        "Risk score",
        "Timeline",
        "Findings",
        "Entities",
        "Gaps",
        "Recommended actions",
        "Evidence",
    ]


def test_only_the_sections_of_a_report_are_shown():
    shown = ["Summary", "Risk score", "Findings", "Recommended actions", "Gaps"]
    assert headings(to_markdown(executive()), "h2") == shown


def test_a_section_without_content_says_so():
    assert "\n## Gaps\n\nNone.\n" in to_markdown(empty())


def test_every_sentence_is_followed_by_its_evidence():
    text = to_markdown(brute_force())
    assert "within three minutes. [incident 7, step 4] 17 minutes later" in text
    assert "| sequence | +35 | A sign-in followed failed sign-ins. [step 13] |" in text
    assert "* 48 sign-ins from 203.0.113.9 failed between 05:33 and 05:36. [step 4]" in text
    gap = "The provider wazuh could not be queried: it did not respond within 120 s."
    assert f"* {gap} [step 7]" in text
    assert (
        "* Urgent **Lock the account deploy and end its sessions.** "
        "It was used from 203.0.113.9. [step 6]"
    ) in text


def test_the_evidence_is_listed_with_what_it_is_and_where_it_is_cited():
    text = to_markdown(brute_force(), {"step:4": "Asked provider:edge for events: 48 answers"})
    row = "| step 4 | Asked provider:edge for events: 48 answers | Summary, Timeline, F1 |"
    assert row in text
    assert "| incident 7 | Incident 7, as stored in Tocsin |" in text


def test_values_of_entities_are_code_and_addresses_in_sentences_are_defanged():
    text = to_markdown(brute_force())
    assert "| `http://cdn.evil.example/x.sh` | url | malicious |" in text
    assert "curl fetched hxxp[://]cdn[.]evil[.]example/x[.]sh. [step 9]" in shown(text)


@settings(max_examples=scale_examples(40))  # each is a whole report, read with a whole parser
@given(texts)
def test_whatever_the_text_it_changes_nothing_but_itself(text):
    markdown = to_markdown(hostile(text))
    assert shape(markdown) == HARMLESS
    cells = shown(markdown)
    words = defang_links(clean_line(text))
    assert cells[0] == words
    assert f"{words} [{defang_links(clean_line(format_reference(text)))}, step 1]" in cells
    value = clean_value(text)
    assert (defang_links(clean_line(value)) if re.search(r"[`|]", value) else value) in cells


@given(texts)
def test_nothing_in_a_sentence_is_taken_for_an_address(text):
    assert not LINKS.test(defang_links(clean_line(text)))


@pytest.mark.parametrize("text", HOSTILE)
def test_known_tricks_stay_text(text):
    assert shape(to_markdown(hostile(text))) == HARMLESS
    assert not LINKS.test(defang_links(clean_line(text)))


def test_defanging_twice_changes_nothing_more():
    once = defang_links("https://a@evil.example/x www.1")
    assert once == "hxxps[://]a[@]evil[.]example/x www[.]1"
    assert defang_links(once) == once


def test_plain_words_and_numbers_are_left_readable():
    assert escape_markdown("203.0.113.9 failed 48 times (05:33 to 05:36), -7.5 points.") == (
        "203.0.113.9 failed 48 times (05:33 to 05:36), -7.5 points."
    )


def test_what_is_long_is_bounded_and_says_so():
    text = to_markdown(huge())
    assert len(text) < 1_000_000
    assert text.count("4,750 more are in the JSON report.") == 5


def test_the_same_report_is_written_the_same():
    assert to_markdown(brute_force()) == to_markdown(brute_force())
