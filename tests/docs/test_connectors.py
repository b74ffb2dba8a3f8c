"""Pages of SOAR connectors: all settings, and valid examples."""

from __future__ import annotations

import json
import re
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from tocsin import CaseChannel, ObjectChannel
from tocsin.fields import SettingsOrigin
from tocsin_connectors.microsoft.resources import READ_PERMISSIONS
from tocsin_connectors.soar.sentinel_incidents.client import REQUIRED_ACTIONS

FOLDER = Path(__file__).parents[2] / "docs/soar/connectors"
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.md"))}
FIRST = PAGES.pop("README")
CHANNELS = {
    entry_point.name: entry_point
    for entry_point in entry_points(group="tocsin.plugins")
    if entry_point.value.startswith("tocsin_connectors.soar.")
}
SHARED = CaseChannel.Settings.model_fields
each_page = pytest.mark.parametrize("name", PAGES)
ROW = re.compile(r"^\| `(\w+)` \| (.+?) \|", re.MULTILINE)


def settings_of(name: str) -> type[CaseChannel.Settings]:
    return CHANNELS[name].load().tocsin_channels().Settings


def rows(page: str) -> dict[str, str]:
    """Return the table of settings: what stands there as the default of each."""
    [table] = re.findall(r"^\| Setting \|.*?\n\n", page, re.DOTALL | re.MULTILINE)
    return dict(ROW.findall(table))


def own(name: str) -> set[str]:
    """Return the settings that a channel adds, and those that it has otherwise."""
    fields = settings_of(name).model_fields
    return {
        field_
        for field_ in fields
        if field_ not in SHARED or fields[field_].description != SHARED[field_].description
    }


def test_every_channel_has_a_page_and_a_row():
    assert sorted(PAGES) == sorted(CHANNELS)
    listed = re.findall(r"^\| \[`([\w-]+)`\]\(([\w-]+)\.md\) \|", FIRST, re.MULTILINE)
    assert listed == [(channel, channel) for channel in sorted(CHANNELS)]


def test_the_settings_that_all_share_are_told_once():
    declared = {*ObjectChannel.Settings.__annotations__, *CaseChannel.Settings.__annotations__}
    assert set(rows(FIRST)) == declared


@each_page
def test_the_settings_of_a_channel_are_told_and_no_others(name):
    assert set(rows(PAGES[name])) == own(name)


@pytest.mark.parametrize("name", ["README", *PAGES])
def test_a_default_is_that_of_the_code(name):
    fields = SHARED if name == "README" else settings_of(name).model_fields
    for setting, written in rows(FIRST if name == "README" else PAGES[name]).items():
        field = fields[setting]
        assert (written == "required") == field.is_required(), setting
        match written:
            case "none":
                assert field.default is None, setting
            case "`true`" | "`false`":
                assert field.default is (written == "`true`"), setting
            case str() if isinstance(field.default, str):
                assert f"`{field.default}`" in written, setting
            case str() if isinstance(field.default, int):
                assert written == f"`{field.default}`", setting


@each_page
def test_the_example_of_a_page_is_valid(name, monkeypatch):
    [example] = re.findall(r"^```toml\n(enabled.*?)^```$", PAGES[name], re.DOTALL | re.MULTILINE)
    for variable in re.findall(r'env = "(\w+)"', example):
        monkeypatch.setenv(variable, "secret")
    told = tomllib.loads(example)
    assert name in told["enabled"]
    for destination in told["destinations"].values():
        assert destination["plugin"] == name
        settings_of(name).model_validate(destination, context=SettingsOrigin(Path()).context())


@each_page
def test_a_page_has_the_shape_of_the_others(name):
    headings = re.findall(r"^## (.+)$", PAGES[name], re.MULTILINE)
    assert headings == ["Platform setup", "Settings", "Event mapping", "Test coverage"]


def test_the_role_for_azure_has_what_is_needed_and_nothing_else():
    [role] = re.findall(
        r"^ *```json\n(.*?)^ *```$", PAGES["sentinel-incidents"], re.DOTALL | re.MULTILINE
    )
    assert sorted(json.loads(role)["Actions"]) == sorted((*REQUIRED_ACTIONS, READ_PERMISSIONS))
