"""Jira wiki markup of events: valid and without injection."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from receiver_events import RENDERER, context_of, make, usual, written
from tocsin import Event, EventType
from tocsin_plugins.ticketing.markup import replace_unprintable

TAKEN = Draft202012Validator(
    {
        "type": "object",
        "required": ["fields"],
        "additionalProperties": False,
        "properties": {
            "fields": {
                "type": "object",
                "required": ["summary", "description", "labels"],
                "additionalProperties": False,
                "properties": {
                    "summary": {"minLength": 1, "maxLength": 255, "pattern": r"^[^\r\n]*$"},
                    "description": {"type": "string", "minLength": 1, "maxLength": 32_767},
                    "labels": {"items": {"type": "string", "pattern": r"^\S+$"}},
                },
            }
        },
    }
)
_OWN_LINK = re.compile(r"^\* \[Open in (Tocsin|SIEM)\|https?://[^\[\]|{}!\n]+\]$", re.MULTILINE)
_OWN_MARKS = re.compile(r"^\*(?= )|^\*(?=.*\*$)|\*$|\{\{|\}\}", re.MULTILINE)
_HARMLESS = re.compile(r"&(?:amp|#\d+);|^[\w ]+: ", re.MULTILINE)
HOSTILE = (
    "[~admin] [x|http://example.com] !http://example.com/a.png! {code}{color:red}",
    "h1. Big\nbq. quoted\n|a|b|\n# one\n---- *bold* _em_ -no- SEC-1 :) (!) \\\\ &#91;",
    "\\{}[]()|*_-+^~!?@:<>#&bq.h1.h2.h3.h4.h5.h6." * 400,
    "\u202egnp.exe \x00\x1b[31m",
    "",
)
every_event = pytest.mark.parametrize("kind", list(EventType))


def description_of(event: Event) -> str:
    """Return the description that Jira is sent, having held the issue against what it takes."""
    body: Any = replace_unprintable(json.loads(RENDERER.render("jira", event, "wiki")))
    assert not list(TAKEN.iter_errors(body))
    return str(body["fields"]["description"])


def expect_nothing_of_others(description: str) -> None:
    """Expect that beside bullets, bold, code and links of ours nothing means anything."""
    rest = _HARMLESS.sub("", _OWN_MARKS.sub("", _OWN_LINK.sub("", description)))
    assert not re.search(r"[\\{}\[\]|*_+^~!?@<>#]|\bbq\.|\bh[1-6]\.", rest)


@every_event
def test_a_sample_is_taken_and_names_its_event(kind):
    event = usual(kind)
    assert event.id in unescape(description_of(event))


@every_event
@pytest.mark.parametrize("text", HOSTILE)
def test_what_others_wrote_means_nothing(kind, text):
    expect_nothing_of_others(description_of(written(kind, text)))


@every_event
def test_what_is_too_long_is_shortened_with_its_link(kind):
    text = "long " * 20_000
    event = make(kind, context_of(kind, "", [text]), title=text, error=text, last_error=text)
    assert event.data["url"] in description_of(event)


@every_event
@given(text=st.text(max_size=300))
def test_whatever_others_wrote_means_nothing(kind, text):
    expect_nothing_of_others(description_of(written(kind, text)))
