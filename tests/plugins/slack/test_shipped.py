"""Shipped templates: Slack accepts any event's message, and no message mentions anyone."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tocsin_templates
from receiver_pages import ALERT
from tocsin import Delivery, Event, EventType
from tocsin.delivery.destinations.samples import build_sample
from tocsin.delivery.rendering import Renderer

from .blocks import calls, judge, text_objects
from .simulator import LONGEST_UPDATED_TEXT

[FOLDER] = map(Path, tocsin_templates.tocsin_template_paths())
RENDERER = Renderer([FOLDER])
NOW = datetime(2026, 11, 21, 5, 33, 1, tzinfo=UTC)
CALLS = ("<!channel>", "<!here|here>", "<!everyone>", "<@U123>", "<!subteam^S1|@soc>", "<#C123>")
HOSTILE = (
    *CALLS,
    "@here",
    "@channel",
    "&lt;!channel&gt;",
    "<https://evil.example|click> *bold* `code` ~no~",
    "\u202e<!channel>\u2066",
    "<" * 400,
    "&" * 400,
    "`<!channel>`",
    "x" * 4_000,
    "",
)
every_kind = pytest.mark.parametrize("kind", list(EventType))


def hostile(kind: EventType, text: str) -> Event:
    """Return an event with this text in all fields that others can write."""
    usual = build_sample(kind, "https://tocsin.example.com", NOW)
    names = {"title", "error", "last_error", "schedule_name", "provider"}
    data = {name: text if name in names else value for name, value in usual.data.items()}
    context: dict[str, Any] = dict(usual.context)
    entities = [
        {"kind": kind, "value": text} for kind in ("user", "host", "url", "file", "process")
    ]
    entities += [{"kind": "host", "value": f"<!here>-{number}"} for number in range(300)]
    if "incident" in context:
        written = dict.fromkeys(("title", "description", "external_number", "source_url"), text)
        told = {"entities": entities, "techniques": [text, "<!here>"] * 9}
        context["incident"] = {**context["incident"], **written, **told}
    else:
        schedule = dict.fromkeys(("name", "query", "last_error", "next_run_at"), text)
        context["schedule"] = {**context["schedule"], **schedule}
        met = [{"entity": entity, "disposition": "malicious"} for entity in entities]
        context["report"] = {"summary": [{"text": text}] * 9, "entities": met, "verdict": text}
    return Event(
        id=usual.id,
        event_type=kind,
        timestamp=NOW,
        data=data,
        subject=usual.subject,
        context=context,
    )


def delivery(event: Event, **members: Any) -> Delivery:
    usual = {"id": "dlv_1", "attempt": 1, "remote_id": None}
    return Delivery(
        event=event, render=lambda part: RENDERER.render("slack", event, part), **usual | members
    )


@every_kind
@pytest.mark.parametrize("text", HOSTILE)
async def test_no_text_of_others_calls_anybody(make, slack, kind, text):
    first = await make().deliver(delivery(hostile(kind, text)))
    await make().deliver(delivery(hostile(kind, text), remote_id=first.remote_id))
    assert len(slack.channel.messages) == 2
    for message in slack.channel.messages:
        assert calls(message) == set()


@every_kind
async def test_no_text_of_others_calls_anybody_by_a_webhook(make, slack, kind):
    for text in CALLS:
        channel = make(webhook_url=slack.webhook_url)
        await channel.deliver(delivery(hostile(kind, text)))
    assert all(calls(body) == set() for body in slack.webhook_bodies)
    assert all(judge(body["blocks"]) is None for body in slack.webhook_bodies)


@pytest.mark.parametrize("call", CALLS)
def test_the_tests_know_a_call_when_they_see_one(call):
    assert calls({"text": f"look, {call}"})
    assert calls({"blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": call}}]})
    assert calls({"text": "@here", "link_names": True})
    assert not calls({"text": "@here <!date^1795262400^{date}|then>"})


@every_kind
async def test_what_is_told_is_escaped_once(make, slack, kind):
    event = hostile(kind, "Q&A <b>")
    await make().deliver(delivery(event))
    [message] = slack.channel.messages
    assert "Q&amp;A &lt;b&gt;" in message["text"]
    plain = [
        object_["text"]
        for object_ in text_objects(message["blocks"])
        if object_["type"] == "plain_text"
    ]
    assert any("Q&A <b>" in text for text in plain)


@pytest.mark.parametrize("letter", ["x", "<", "`", "\u202e", "\U0001f6a8"])
def test_the_largest_incident_that_is_kept_is_told(letter):
    usual = build_sample(EventType.INCIDENT_ALERT, "https://tocsin.example.com", NOW)
    users = [{"kind": "user", "value": f"{number}{letter * 500}"} for number in range(1_000)]
    written = {"title": letter * 1_000, "description": letter * 60_000, "entities": users}
    incident = {**usual.context["incident"], **written, "techniques": [letter * 200] * 100}
    event = replace(
        usual, data={**usual.data, "title": letter * 1_000}, context={"incident": incident}
    )
    body = json.loads(RENDERER.render("slack", event))
    assert judge(body["blocks"]) is None
    assert re.search(r"and (990|1000) more", json.dumps(body))


async def test_an_alert_says_what_has_to_be_known(make, slack):
    await make().deliver(delivery(ALERT))
    [message] = slack.channel.messages
    written = json.dumps(message, ensure_ascii=False)
    for word in ("Many failed sign-ins", "High", "203.0.113.7", "T1110", ALERT.data["url"]):
        assert word in written
    assert "High" in message["text"]


@given(st.sampled_from(list(EventType)), st.text(max_size=200), st.integers(1, 40))
def test_whatever_others_write_slack_takes_it_and_it_calls_nobody(kind, text, times):
    body = json.loads(RENDERER.render("slack", hostile(kind, text * times)))
    assert judge(body["blocks"]) is None
    assert len(body["text"]) <= LONGEST_UPDATED_TEXT
    assert calls(body) == set()
