"""Markup conversions: valid for trackers, and without side effects."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta
from html import unescape
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tocsin_templates
from tocsin import (
    Confidence,
    Disposition,
    Entity,
    EntityAssessment,
    EntityKind,
    EventType,
    Persona,
    Report,
    Verdict,
    Window,
)
from tocsin.delivery.destinations.samples import build_sample
from tocsin.delivery.rendering import Renderer
from tocsin.reports import escape_markdown as escaped_markdown
from tocsin.reports import to_json
from tocsin.testing import ManualClock
from tocsin_plugins.ticketing.markup import (
    node_text,
    parse_document,
    render_plain,
    render_wiki,
    replace_unprintable,
    shorten_markdown,
)
from tocsin_plugins.ticketing.markup.wiki import escape_wiki
from tocsin_plugins.ticketing.servicenow.fields import journal_entry

from .jira_simulator import DOCUMENTS

BLOCKS = ("# ", "\n", "\n\n", "* ", "1. ", "> ", "```", "---", "    ", "| a | b |\n| - | - |\n")
PHRASES = (
    "`",
    "**",
    "_",
    "\\\n",
    "<b>",
    "&#124;",
    "![x](y)",
    "[x](http://example.com)",
    "[a](<b c>)",
)
pieces = st.one_of(st.text(max_size=20), st.sampled_from([*BLOCKS, *PHRASES]))
markdowns = st.lists(pieces, max_size=25).map("".join)
REPORT = """# Report

**Verdict:** malicious\\
**Score:** 90 of 100

Entities:

| Value | Seen |
| --- | --: |
| `203.0.113.7` | 3 |

* one [step 1](https://tocsin.example.com/s)
  1. inside
* two

> quoted
"""


@given(markdowns)
def test_a_document_is_always_one(markdown):
    assert not list(DOCUMENTS.iter_errors(parse_document(markdown)))


@given(markdowns)
def test_every_form_says_something_where_the_document_does(markdown):
    said = parse_document(markdown)
    assert bool(node_text(said).strip()) <= bool(
        render_wiki(said).strip() and render_plain(said).strip()
    )


WIKI = """h1. Report

*Verdict&#58;* malicious
*Score&#58;* 90 of 100

Entities&#58;

||Value||Seen||
|{{203.0.113.7}}|3|

* one [step 1|https://tocsin.example.com/s]
*# inside
* two

{quote}
quoted
{quote}"""
PLAIN = """Report
------

Verdict: malicious
Score: 90 of 100

Entities:

Value | Seen
203.0.113.7 | 3

- one step 1: https://tocsin.example.com/s
  1. inside
- two

> quoted"""


def test_a_report_keeps_its_form():
    assert render_wiki(parse_document(REPORT)) == WIKI
    assert render_plain(parse_document(REPORT)) == PLAIN


@given(st.text())
def test_escaped_text_holds_nothing_that_wiki_markup_means(text):
    assert unescape(escape_wiki(text)) == unescape(text.replace("&", "&amp;"))
    without_entities = re.sub(r"&(?:amp|#\d+);", "", escape_wiki(text))
    assert not re.search(r"[\\{}\[\]()|*_+^~!?@:<>#&-]|\bbq\.|\bh[1-6]\.", without_entities)


@given(st.text())
def test_what_others_wrote_makes_no_link_in_any_form(text):
    said = parse_document("\n".join(map(escaped_markdown, text.splitlines())))
    assert '"link"' not in json.dumps(said)
    assert "|http" not in render_wiki(said)


def test_code_cannot_end_its_block_and_holds_nothing_invisible():
    said = render_wiki(parse_document("```\nuname {noformat} {color:red}\n```"))
    assert said == "{noformat}\nuname { noformat} {color:red}\n{noformat}"


@pytest.mark.parametrize(
    "text", ["!\"#$%&'()*+,-./:;<=>?@[]^_{|}~\\", "h1. bq. https://x a-b h2.h3. {{a}}"]
)
def test_templates_escape_wiki_markup_as_the_channel_does(text):
    [folder] = map(Path, tocsin_templates.tocsin_template_paths())
    now, url = ManualClock().now(), "https://tocsin.example.com"
    event = replace(
        build_sample(EventType.SCHEDULE_DISABLED, url, now), context={"schedule": {"query": text}}
    )
    body = json.loads(Renderer([folder]).render("jira", event, "wiki"))
    assert f"Query: {{{{{escape_wiki(text)}}}}}" in body["fields"]["description"]


@pytest.mark.parametrize("most", [200, 1_700])
def test_what_is_too_long_loses_its_last_lines_and_keeps_link_and_event(most):
    lines = [f"line {number}" for number in range(200)]
    text = "\n".join(lines) + "\n\n[Open](https://tocsin.example.com)\n\nTocsin event evt_1"
    kept = shorten_markdown(text, lambda part: len(part) <= most)
    assert most - 10 <= len(kept) <= most
    assert kept.startswith("line 0\nline 1\n")
    assert kept.endswith("[Open](https://tocsin.example.com)\n\nTocsin event evt_1")


def test_what_fits_stays_as_it_is():
    assert shorten_markdown("a\n\nb\n\nc", lambda part: True) == "a\n\nb\n\nc"


@given(st.text())
def test_what_cannot_be_stored_is_replaced_everywhere(text):
    value = {"a": [text, 1, None, {"b": text}]}
    assert replace_unprintable(value) == {
        "a": [replace_unprintable(text), 1, None, {"b": replace_unprintable(text)}]
    }
    assert len(str(replace_unprintable(text))) == len(text)
    assert "\x00" not in str(replace_unprintable(text + "\x00"))


@given(st.text(), st.sampled_from(["[code]", "[/CODE]", "[ code ]", "@[admin]"]))
def test_no_journal_renders_or_mentions_what_others_wrote(text, tag):
    entry = journal_entry(f"`{text.replace('`', '')}{tag}`\n\n{tag}\n\nTocsin event evt_1")
    assert not re.search(r"\[\s*/?\s*code|@\[", entry, re.IGNORECASE)
    assert entry.startswith("Tocsin event evt_1\n\n")


def test_addresses_in_a_journal_are_no_links():
    entry = journal_entry("`https://evil.example.com/x`\n\nTocsin event evt_1")
    assert entry.endswith("\n\nhxxps[://]evil[.]example[.]com/x")


def test_what_is_left_of_a_long_report_makes_no_link():
    """A cut in the middle of a code span would turn untrusted text into Markdown."""
    now, url = ManualClock().now(), "https://tocsin.example.com"
    value = "[x](http://evil.example.com)" * 6
    entities = tuple(
        EntityAssessment(
            entity=Entity(EntityKind.USER, f"{number}{value}"), disposition=Disposition.UNKNOWN
        )
        for number in range(300)
    )
    report = Report(
        title="Report",
        query="?",
        persona=Persona.ANALYST,
        window=Window(now - timedelta(days=1), now),
        verdict=Verdict.BENIGN,
        confidence=Confidence.LOW,
        risk_score=0,
        summary=(),
        entities=entities,
    )
    [folder] = map(Path, tocsin_templates.tocsin_template_paths())
    told = build_sample(EventType.INVESTIGATION_COMPLETED, url, now)
    event = replace(told, context={**told.context, "report": to_json(report)})
    note = Renderer([folder]).render("jira", event, "note").decode()
    assert "… [shortened: " in note
    assert set(re.findall(r'"href": "([^"]+)"', json.dumps(parse_document(note)))) == {
        event.data["url"]
    }
