"""Destinations page: all settings, and correct examples."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tocsin import Channel, EventType
from tocsin.conditions import Condition
from tocsin.conditions.bindings import SELECTIONS
from tocsin.conditions.filters import FILTERS
from tocsin.conditions.methods import METHODS
from tocsin.conditions.predicates import PREDICATES
from tocsin.delivery.destinations.repository import DestinationState, StopReason
from tocsin.delivery.destinations.samples import build_sample
from tocsin.fields import SettingsOrigin
from tocsin_plugins.webhook import Webhook

PAGE = (Path(__file__).parents[2] / "docs/operators/destinations.md").read_text(encoding="utf-8")
TABLES = re.findall(r"^\| Setting \|.*?\n\n", PAGE, re.DOTALL | re.MULTILINE)
TOML = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
CONDITIONS = re.findall(r'^when = "(.*)"$', PAGE, re.MULTILINE)


def settings(table: str) -> list[str]:
    return re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)


def test_every_setting_is_told_once_and_no_other():
    common, webhook = map(settings, TABLES)
    assert sorted(common) == sorted(Channel.Settings.model_fields)
    own = Webhook.Settings.model_fields.keys() - Channel.Settings.model_fields.keys()
    assert sorted(webhook) == sorted(own)


def test_defaults_that_are_one_word_are_those_of_the_code():
    model = Channel.Settings.model_validate({"plugin": "webhook"})
    written = re.findall(r"^\| `(\w+)` \| `(\w+)` \|", TABLES[0], re.MULTILINE)
    assert len(written) > 5
    for name, text in written:
        value = {"true": True, "false": False}.get(text, text)
        given = Channel.Settings.model_validate({"plugin": "webhook", name: value})
        assert getattr(given, name) == getattr(model, name), name


@pytest.mark.parametrize("text", [sample for sample in TOML if "[destinations." in sample])
def test_the_files_of_the_page_are_valid(monkeypatch, text):
    monkeypatch.setenv("SOAR_WEBHOOK_SECRET", "whsec_" + "QUJD" * 10)
    monkeypatch.setenv("SLACK_WEBHOOK_URL", "https://hooks.slack.com/services/T0/B0/XXXX")
    monkeypatch.setenv("PAGERDUTY_ROUTING_KEY", "e93facc04764012d7bfb002500d5d1a6")
    [table] = tomllib.loads(text)["destinations"].values()
    Webhook.Settings.model_validate(table, context=SettingsOrigin(Path()).context())


def test_every_state_and_reason_is_told():
    for word in (*DestinationState, *StopReason):
        assert word in PAGE


@pytest.mark.parametrize("text", CONDITIONS)
def test_every_condition_can_be_decided_for_every_event(clock, text):
    condition = Condition(text)
    for kind in EventType:
        event = build_sample(kind, "https://tocsin.example.org", clock.now())
        variables = {"event_type": kind.value, "data": event.data, "subject": event.subject}
        assert condition.holds({**variables, "context": event.context}) in {True, False}


def test_a_condition_picks_what_the_page_says(clock):
    event = build_sample(EventType.INCIDENT_ALERT, "", clock.now())
    incident = event.context["incident"] | {
        "entities": [{"kind": "host", "value": "dc01"}],
        "techniques": ["T1566"],
    }
    data = {**event.data, "title": "Odd VPN sign-in", "provider": "lab"}
    variables = {"event_type": "incident-alert", "data": data, "context": {"incident": incident}}
    held = [Condition(text).holds(variables | {"subject": "incident:7"}) for text in CONDITIONS]
    assert held == [True, False, True, True, False]


def test_the_page_lists_what_expressions_may_use_and_nothing_else():
    rows = dict(
        re.findall(r"^\| ([^|]+) \| (.*) \|$", PAGE.split("### Expressions")[1], re.MULTILINE)
    )
    named = {kind: re.findall(r"`(\w+)`", cell) for kind, cell in rows.items()}
    filters = [name for kind, names in named.items() if "ilters" in kind for name in names]
    methods = named["String methods"] + named["Object methods"]
    assert sorted(filters) == sorted([*FILTERS, "map", *SELECTIONS])
    assert sorted(methods) == sorted(METHODS)
    tests = [name for name in named["Tests after `is`"] if name != "select"]
    assert sorted(tests) == sorted(name for name in PREDICATES if name.isalpha())
