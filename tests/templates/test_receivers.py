"""Bodies for every receiver: valid for any event."""

from __future__ import annotations

import json
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import try_cases
from full_run import scale_examples
from receiver_events import NOW, PASSES_ON, RENDERER, check, context_of, make, written
from receiver_pages import FOLDER, RECEIVERS
from tocsin import EventType
from tocsin.contracts import CONTRACT
from tocsin.delivery.destinations.samples import build_sample
from tocsin.delivery.rendering import Renderer
from tocsin.model import Severity

every_receiver = pytest.mark.parametrize("receiver", RECEIVERS)


@every_receiver
def test_every_receiver_has_a_contract_and_a_template_for_each_event(receiver):
    contract = RENDERER.contract(receiver)
    assert contract is not None
    assert contract.body, "a schema of the body"
    assert not contract.severity or set(contract.severity) == set(Severity)
    assert {path.name for path in (FOLDER / receiver).glob("*.json.j2")} >= {
        f"{kind}.json.j2" for kind in EventType
    }
    assert (FOLDER / receiver / CONTRACT).read_text(encoding="utf-8").startswith("#")


@every_receiver
def test_a_sample_is_taken(receiver):
    with try_cases() as case:
        for kind in EventType:
            with case(kind):
                check(receiver, build_sample(kind, "https://tocsin.example", NOW))


@every_receiver
def test_what_is_missing_beside_the_event_is_missed_by_nobody(receiver):
    with try_cases() as case:
        for kind in EventType:
            with case(kind):
                check(receiver, make(kind, context={}))


@pytest.mark.parametrize("receiver", sorted({*RECEIVERS} - {"envelope", "cloudevents"}))
def test_an_operator_builds_on_what_ships(tmp_path, receiver):
    (tmp_path / receiver).mkdir()
    (tmp_path / receiver / "incident-alert.json.j2").write_text(
        f'{{% extends "shipped/{receiver}/incident-alert.json.j2" %}}'
        '{% block title %}{{ "[SOC] " ~ event.data.title }}{% endblock %}',
        encoding="utf-8",
    )
    body = Renderer([FOLDER], tmp_path).render(receiver, make(EventType.INCIDENT_ALERT, title="x"))
    assert '"[SOC] x"' in json.dumps(json.loads(body))


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
def test_hostile_text_stays_in_its_place(receiver):
    with try_cases() as case:
        for kind, text in product(EventType, HOSTILE):
            with case((kind, text)):
                check(receiver, written(kind, text, [text, "203.0.113.7"]))


@pytest.mark.parametrize(
    "receiver", [receiver for receiver in RECEIVERS if receiver not in PASSES_ON]
)
def test_what_is_too_long_is_shortened_with_the_link_kept(receiver):
    text, many = "long " * 20_000, [f"host-{number}.example.com" for number in range(1_000)]
    members = dict.fromkeys(("title", "error", "last_error", "schedule_name"), text)
    with try_cases() as case:
        for kind in EventType:
            with case(kind):
                event = make(kind, context_of(kind, text, [text, *many]), **members)
                assert event.data["url"] in json.dumps(check(receiver, event))


@every_receiver
def test_every_severity_is_one_of_the_receivers(receiver):
    for severity in Severity:
        check(receiver, make(EventType.INCIDENT_ALERT, severity=severity.value))


texts = st.text(max_size=300)


@every_receiver
@settings(max_examples=scale_examples(30))
@given(st.sampled_from(list(EventType)), texts, texts, st.lists(texts, max_size=5))
def test_whatever_an_event_holds_it_is_taken(receiver, kind, title, text, values):
    members = {"title": title, "error": text, "last_error": text, "schedule_name": title}
    check(receiver, make(kind, context_of(kind, text, values), **members))
