"""Tracker pages: all options with defaults, and valid examples."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from receiver_pages import FOLDER as TEMPLATES
from receiver_samples import ALERT
from tocsin import Tracker
from tocsin.contracts import find_violations, load_contract
from tocsin.delivery.rendering import Renderer
from tocsin.testing import make_settings
from tocsin_plugins.ticketing import Ticketing
from tocsin_plugins.ticketing.channel import load_tracker

FOLDER = Path(__file__).parents[2] / "docs/soar/trackers"
TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.md"))}
SAMPLES = [
    (page, given)
    for page, text in TEXTS.items()
    for sample in re.findall(r"^```toml\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    for given in tomllib.loads(sample).get("destinations", {}).values()
]
every_page = pytest.mark.parametrize("page", TEXTS)


def trackers_of(page: str) -> list[type[Tracker]]:
    names = {given["tracker"] for of, given in SAMPLES if of == page}
    return [load_tracker(name) for name in sorted(names)]


def options_of(page: str) -> dict[str, str]:
    """Return what the page calls the default of each option."""
    section = TEXTS[page].partition("## Options\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \|.*\| ([^|]+) \|$", section, re.MULTILINE)
    return {name: default.strip() for name, default in rows}


@every_page
def test_every_page_has_an_example(page):
    assert trackers_of(page)


@every_page
def test_the_page_names_every_option_with_its_default(page):
    fields = {
        name: field
        for kind in trackers_of(page)
        for name, field in kind.Options.model_fields.items()
    }
    told = options_of(page)
    assert told.keys() == fields.keys()
    for name, default in told.items():
        if word := re.fullmatch(r"`([^`]+)`", default):
            default_of = fields[name].default
            told_by_code = (
                ", ".join(default_of) if isinstance(default_of, tuple) else str(default_of)
            )
            assert word[1] in (told_by_code, told_by_code.lower(), "url"), name
        else:
            assert not fields[name].default, name


@pytest.mark.parametrize(("page", "given"), SAMPLES)
def test_every_example_is_valid(page: str, given: Mapping[str, Any]):
    settings = make_settings(Ticketing, **{**given, "secret": "a secret"})
    assert settings.template == load_tracker(given["tracker"]).receiver


@every_page
def test_the_page_has_the_priorities_of_the_contract(page):
    for kind in trackers_of(page):
        contract = load_contract([TEMPLATES], kind.receiver)
        assert contract is not None
        rows = [f"| {ours} | {theirs} |" for ours, theirs in contract.severity.items()]
        section = TEXTS[page].partition("## Priorities\n")[2].partition("\n## ")[0]
        assert not section or all(row in section for row in rows)


def test_the_templates_of_the_page_of_jira_change_both_titles(tmp_path):
    samples = re.findall(r"^```jinja\n(.*?)^```$", TEXTS["jira"], re.DOTALL | re.MULTILINE)
    mine = tmp_path / "jira"
    mine.mkdir()
    for name, sample in zip(("incident-alert", "incident-alert.wiki"), samples, strict=True):
        (mine / f"{name}.json.j2").write_text(sample, encoding="utf-8")
    renderer = Renderer([TEMPLATES], tmp_path)
    for part in ("body", "wiki"):
        made = json.loads(renderer.render("jira", ALERT, part))
        assert made["fields"]["summary"] == f"[SOC] {ALERT.data['title']}"


def test_a_webhook_to_jira_needs_no_more_than_the_block_that_its_contract_names(tmp_path):
    contract = load_contract([TEMPLATES], "jira")
    assert contract is not None
    [block] = re.findall(r"`place` block[^`]*: `(.*),`", contract.notes[1])
    mine = tmp_path / "jira"
    mine.mkdir()
    text = '{% extends "shipped/jira/incident-alert.json.j2" %}{% block place %}' + block
    (mine / "incident-alert.json.j2").write_text(text + ",{% endblock %}", encoding="utf-8")
    body = Renderer([TEMPLATES], tmp_path).render("jira", ALERT)
    assert find_violations(contract, body) == []
    assert json.loads(body)["fields"]["project"] == {"key": "SEC"}
