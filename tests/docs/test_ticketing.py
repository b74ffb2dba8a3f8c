"""Ticketing page: all settings and trackers."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import entry_points
from inspect import get_annotations
from pathlib import Path

import pytest
from pydantic import ValidationError

from tocsin import ObjectChannel, TicketSettings
from tocsin.testing import make_settings
from tocsin_plugins.ticketing import Ticketing

FOLDER = Path(__file__).parents[2] / "docs/soar"
PAGE = (FOLDER / "ticketing.md").read_text(encoding="utf-8")


def first_column(heading: str) -> set[str]:
    section = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`[^|]+) \|", section, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([\w-]+)`", cell)}


def test_every_tracker_is_listed_with_a_page_and_its_class():
    named = {
        entry_point.name: entry_point.load()
        for entry_point in entry_points(group="tocsin.trackers")
    }
    assert first_column("Trackers") - {"tracker"} == named.keys()
    for name, kind in named.items():
        [row] = re.findall(rf"^\| `{name}` \|.*$", PAGE, re.MULTILINE)
        assert (FOLDER / re.search(r"\((trackers/[\w-]+\.md)\)", row)[1]).is_file()
        assert ("idempotency key" in row) == (kind.idempotency == "native")


def test_every_setting_of_its_own_is_told():
    own = {*get_annotations(ObjectChannel.Settings), *get_annotations(TicketSettings)}
    assert first_column("Settings") == own


def test_the_destination_is_valid():
    [sample] = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    [given] = tomllib.loads(sample)["destinations"].values()
    assert make_settings(Ticketing, **given | {"secret": "a token"}).template == "github"


def test_a_limit_that_no_ticket_keeps_is_not_offered():
    with pytest.raises(ValidationError, match="most_entities"):
        make_settings(Ticketing, tracker="github", most_entities=3)
