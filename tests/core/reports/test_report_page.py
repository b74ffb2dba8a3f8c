"""Reference page of reports: every member, and a valid example."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path

import pytest

from tocsin import model
from tocsin.model import EntityKind, Persona, Report, Section, Severity, Verdict
from tocsin.reports import from_json, to_json
from tocsin.reports.blocks import MAX_ROWS
from tocsin.reports.graph import NODES
from tocsin.reports.text import MAX_LENGTH
from tocsin.reports.text_format import MAX_TEXT

PAGE = (Path(__file__).parents[3] / "docs/reference/report.md").read_text(encoding="utf-8")
[EXAMPLE] = map(json.loads, re.findall(r"^```json\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))
TOLD = dict(re.findall(r"^### (\w+)\n\n(.*?)(?:\n\n|\Z)", PAGE, re.DOTALL | re.MULTILINE))


def classes(kind: type = Report) -> set[str]:
    """Every class of the model that a report is made of."""
    text = " ".join(str(field.type) for field in fields(kind))
    inner = {name for name in re.findall(r"[A-Z]\w+", text) if hasattr(model, name)}
    inner = {name for name in inner if hasattr(getattr(model, name), "__dataclass_fields__")}
    return {kind.__name__}.union(*(classes(getattr(model, name)) for name in inner))


def test_everything_that_a_report_is_made_of_is_told():
    assert TOLD.keys() == classes()


@pytest.mark.parametrize("name", sorted(classes()))
def test_every_member_is_told_and_no_other(name):
    told = re.findall(r"^\| `(\w+)` \|", TOLD[name], re.MULTILINE)
    assert told == [field.name for field in fields(getattr(model, name))]


def test_the_example_is_a_report_and_complete():
    assert to_json(from_json(EXAMPLE)) == EXAMPLE
    assert all(EXAMPLE[name] for name in EXAMPLE)


@pytest.mark.parametrize("words", [Persona, Verdict, Section, Severity, EntityKind])
def test_every_word_is_told(words):
    assert [word for word in words if f"`{word}`" not in PAGE] == []


def test_the_bounds_are_those_of_the_code():
    assert f"{MAX_ROWS} rows per table, {MAX_TEXT:,} characters per text" in PAGE
    assert f"{MAX_LENGTH:,} characters in total" in PAGE
    assert f"up to {NODES} entities" in PAGE
