"""Reports as HTML."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser
from time import perf_counter
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings

from full_run import scale_examples
from report_samples import HOSTILE, brute_force, empty, executive, hostile, huge, texts
from tocsin.model import Statement
from tocsin.reports import CONTENT_SECURITY_POLICY, to_html
from tocsin.reports.text_format import clean_line, clean_value

SAMPLES = {"analyst": brute_force(), "executive": executive(), "empty": empty(), "huge": huge(500)}
VOID = {"meta"}
REACHES_OUT = {"src", "srcset", "action", "style", "background", "poster", "data", "formaction"}


class Page(HTMLParser):
    """A page as a browser sees it: its elements, and the text in each."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, tuple[tuple[str, str | None], ...]]] = []
        self.texts: list[str] = []
        self.others: list[str] = []
        self._open: list[tuple[str, int]] = []
        self.feed(html)
        self.close()
        assert not self._open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, tuple(attrs)))
        self.texts.append("")
        if tag not in VOID:
            self._open.append((tag, len(self.texts) - 1))

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, tuple(attrs)))
        self.texts.append("")

    def handle_endtag(self, tag):
        assert self._open.pop()[0] == tag

    def handle_data(self, data):
        for _, position in self._open:
            self.texts[position] += data

    def handle_comment(self, data):
        self.others.append(data)

    unknown_decl = handle_pi = handle_comment

    def all(self, tag: str) -> list[str]:
        found = zip(self.elements, self.texts, strict=True)
        return [text for (name, _), text in found if name == tag]

    def attributes(self, name: str) -> list[str]:
        return [value for _, attrs in self.elements for key, value in attrs if key == name]


def drawings(html: str) -> dict[str, ET.Element]:
    """The drawings of a page, read as XML."""
    found = re.findall(r'<svg class="(\w+)(.*?)</svg>\s*</div>', html, re.DOTALL)
    return {name: ET.fromstring(f'<svg class="{name}{rest}</svg>') for name, rest in found}


HARMLESS = Page(to_html(hostile("harmless"))).elements


def test_what_comes_first_and_then_the_sections_in_their_order():
    page = Page(to_html(brute_force()))
    assert page.all("h1") == ["SSH brute force from 203.0.113.9 on web-1, followed by a sign-in"]
    assert page.all("h2") == [
        "Summary",
        "Risk score",
        "Timeline",
        "Findings",
        "Entities",
        "Gaps",
        "Recommended actions",
        "Evidence",
    ]
    assert page.all("p")[1] == "Malicious High confidence"
    assert drawings(to_html(brute_force())).keys() == {"gauge", "timeline", "graph"}


def test_only_the_sections_of_a_report_are_shown():
    html = to_html(executive())
    shown = ["Summary", "Risk score", "Findings", "Recommended actions", "Gaps"]
    assert Page(html).all("h2") == shown
    assert drawings(html).keys() == {"gauge"}


def test_the_reply_to_the_last_message_comes_before_the_summary():
    report = replace(brute_force(), reply=(Statement("They got in.", ("step:6",)),))
    assert Page(to_html(report)).all("h2")[:2] == ["Reply", "Summary"]


def test_citations_lead_to_what_they_stand_for():
    page = Page(to_html(brute_force(), {"step:4": "Asked edge: 48 events"}))
    targets = {value[1:] for value in page.attributes("href")}
    assert targets <= set(page.attributes("id"))
    assert "Asked edge: 48 events" in page.all("td")


def test_without_a_list_of_evidence_citations_are_words_alone():
    page = Page(to_html(executive()))
    assert all(value.startswith("#part-") for value in page.attributes("href"))
    assert "[incident 7, step 4]" in page.all("p")[2]


@pytest.mark.parametrize("report", SAMPLES.values(), ids=SAMPLES)
def test_a_page_needs_nothing_else(report):
    html = to_html(report)
    page = Page(html)
    assert not {"script", "link", "img", "iframe", "object", "form", "base"} & {
        tag for tag, _ in page.elements
    }
    names = {name for _, attrs in page.elements for name, _ in attrs}
    assert not {name for name in names if name in REACHES_OUT or name.startswith("on")}
    assert all(value.startswith("#") for value in page.attributes("href"))
    assert not re.search(r"@import|url\((?!#)", html)


def test_a_page_allows_itself_its_own_style_and_nothing_more():
    html = to_html(brute_force())
    page = Page(html)
    [style] = page.all("style")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert CONTENT_SECURITY_POLICY.split("; ") == [
        "default-src 'none'",
        f"style-src 'sha256-{digest}'",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    assert CONTENT_SECURITY_POLICY in page.attributes("content")


@pytest.mark.parametrize("report", SAMPLES.values(), ids=SAMPLES)
def test_a_page_can_be_found_through_without_seeing_it(report):
    html = to_html(report)
    page = Page(html)
    tags = [tag for tag, _ in page.elements]
    assert [tags.count(tag) for tag in ("h1", "header", "nav", "main", "footer")] == [1] * 5
    assert tags.count("caption") == tags.count("table")
    ids = page.attributes("id")
    assert len(set(ids)) == len(ids)
    named = [each for value in page.attributes("aria-labelledby") for each in value.split()]
    assert set(named) <= set(ids)
    for drawing in drawings(html).values():
        assert drawing.get("role") == "img"
        assert drawing.findtext("title")


@settings(max_examples=scale_examples(40))  # each is a whole report, read with a whole parser
@given(texts)
def test_whatever_the_text_a_page_has_the_same_elements_and_shows_it_as_it_is(text):
    html = to_html(hostile(text))
    page = Page(html)
    assert page.elements == HARMLESS
    assert page.others == []
    assert len(drawings(html)) == 3
    assert page.all("h1") == page.all("strong") == page.all("title")[:1] == [clean_line(text)]
    assert page.all("code")[0] == clean_value(text)


@pytest.mark.parametrize("text", HOSTILE)
def test_known_tricks_stay_text(text):
    page = Page(to_html(hostile(text)))
    assert page.elements == HARMLESS
    assert page.all("h1") == [clean_line(text)]


def test_template_syntax_stays_as_it_is():
    page = Page(to_html(hostile("{{ 7*7 }} {% raw %}")))
    assert page.all("h1") == ["{{ 7*7 }} {% raw %}"]


def test_each_piece_of_text_keeps_its_direction_of_writing_to_itself():
    html = to_html(hostile("\u202eevil"))
    assert "\u202e" not in html
    assert "<bdi>\N{REPLACEMENT CHARACTER}evil</bdi>" in html


def test_what_is_long_is_bounded_and_quick():
    report = huge()
    started = perf_counter()
    html = to_html(report)
    assert perf_counter() - started < 5  # it takes a fifth of a second; this is for slow machines
    assert len(html.encode()) < 1_000_000


def test_the_same_report_is_drawn_the_same():
    assert to_html(brute_force()) == to_html(brute_force())
    assert to_html(huge(300)) == to_html(huge(300))
