"""Whatever an event holds, each receiver is sent what it takes."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tocsin_templates
from tocsin import Event, EventType
from tocsin.contracts import CONTRACT, find_breaches
from tocsin.delivery.destinations.sampling import sample
from tocsin.delivery.rendering import Renderer
from tocsin.model import EntityKind, Severity

[FOLDER] = map(Path, tocsin_templates.tocsin_template_paths())
RECEIVERS = sorted(it.name for it in FOLDER.iterdir() if it.is_dir() and it.name[0] not in "_.")
RENDERER = Renderer([FOLDER])
NOW = datetime(2026, 11, 21, 5, 33, 1, 123456, UTC)
PASSES_ON = {"envelope"}
"""Receivers that are sent an event's members as they are, however long."""

every_receiver = pytest.mark.parametrize("receiver", RECEIVERS)
every_event = pytest.mark.parametrize("kind", list(EventType))


def make(kind: EventType, context: Any = None, **members: Any) -> Event:
    usual = sample(kind, "https://tocsin.example", NOW)
    return Event(
        id=usual.id,
        event_type=kind,
        timestamp=NOW,
        data={**usual.data, **{it: members[it] for it in members if it in usual.data}},
        subject=usual.subject,
        context=usual.context if context is None else context,
    )


def context_of(kind: EventType, text: str, values: list[str]) -> dict[str, Any]:
    """Return all that producers tell of an event, with this text and these entities in it."""
    usual = dict(sample(kind, "https://tocsin.example", NOW).context)
    kinds = list(EntityKind)
    entities = [
        {"kind": kinds[place % len(kinds)].value, "value": value}
        for place, value in enumerate(values)
    ]
    if kind is EventType.INCIDENT_ALERT:
        more = {"description": text, "entities": entities, "techniques": ["T1110"]}
        return {"incident": {**usual["incident"], **more}}
    if kind is EventType.INVESTIGATION_COMPLETED:
        assessed = [{"entity": it, "disposition": "unknown"} for it in entities]
        usual["report"] = {"summary": [{"text": text}], "entities": assessed, "verdict": "benign"}
    return usual


def check(receiver: str, event: Event) -> bytes:
    body = RENDERER.render(receiver, event)
    assert find_breaches(RENDERER.contract(receiver), body) == []
    assert event.id.encode() in body or receiver in PASSES_ON
    return body


@every_receiver
def test_every_receiver_has_a_contract_and_a_template_for_each_event(receiver):
    contract = RENDERER.contract(receiver)
    assert contract is not None
    assert contract.body, "a schema of the body"
    assert not contract.severity or set(contract.severity) == set(Severity)
    assert {it.name for it in (FOLDER / receiver).glob("*.json.j2")} >= {
        f"{kind}.json.j2" for kind in EventType
    }
    assert (FOLDER / receiver / CONTRACT).read_text(encoding="utf-8").startswith("#")


@every_receiver
@every_event
def test_a_sample_is_taken(receiver, kind):
    check(receiver, sample(kind, "https://tocsin.example", NOW))


@every_receiver
@every_event
def test_what_is_missing_beside_the_event_is_missed_by_nobody(receiver, kind):
    check(receiver, make(kind, context={}))


def test_an_operator_builds_on_what_ships(tmp_path):
    mine = tmp_path / "tines"
    mine.mkdir()
    (mine / "incident-alert.json.j2").write_text(
        '{% extends "shipped/tines/incident-alert.json.j2" %}'
        '{% block title %}{{ "[SOC] " ~ event.data.title }}{% endblock %}',
        encoding="utf-8",
    )
    body = Renderer([FOLDER], tmp_path).render("tines", make(EventType.INCIDENT_ALERT, title="x"))
    assert json.loads(body)["title"] == "[SOC] x"


HOSTILE = [
    '"}, {"x": "',
    "line one\nline two\r\n\ttabbed\x00\x1b[31m",
    "</script><img src=x onerror=alert(1)>",
    "{{ 7 * 7 }}{% raw %}${jndi:ldap://x}",
    "\u202egnp.exe \u2066abc\u2069 \U0001f6a8",
    "\ud800 alone",
    "",
    " ",
]


@every_receiver
@every_event
@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_in_its_place(receiver, kind, text):
    members = dict.fromkeys(("title", "error", "last_error", "schedule_name", "provider"), text)
    body = check(receiver, make(kind, context_of(kind, text, [text, "203.0.113.7"]), **members))
    json.loads(body)


@pytest.mark.parametrize("receiver", [it for it in RECEIVERS if it not in PASSES_ON])
@every_event
def test_what_is_too_long_is_shortened_with_the_link_kept(receiver, kind):
    text, many = "long " * 20_000, [f"host-{number}.example.com" for number in range(1_000)]
    members = dict.fromkeys(("title", "error", "last_error", "schedule_name"), text)
    event = make(kind, context_of(kind, text, [text, *many]), **members)
    assert event.data["url"].encode() in check(receiver, event)


@every_receiver
@pytest.mark.parametrize("severity", list(Severity))
def test_every_severity_is_one_of_the_receivers(receiver, severity):
    check(receiver, make(EventType.INCIDENT_ALERT, severity=severity.value))


texts = st.text(max_size=300)


@every_receiver
@given(st.sampled_from(list(EventType)), texts, texts, st.lists(texts, max_size=5))
def test_whatever_an_event_holds_it_is_taken(receiver, kind, title, text, values):
    members = {"title": title, "error": text, "last_error": text, "schedule_name": title}
    check(receiver, make(kind, context_of(kind, text, values), **members))
