"""QRadar page: permissions, terms and fields."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tocsin.testing import make_settings
from tocsin_connectors.siem.qradar import QRadar
from tocsin_connectors.siem.qradar.aql import ADDRESS_FIELDS, ENTITY_FIELDS
from tocsin_connectors.siem.qradar.lookups import MAX_ADDRESSES
from tocsin_connectors.siem.qradar.values import OFFENSE_TYPES
from tocsin_connectors.siem.qradar.write_back import MAX_NOTE_LENGTH

PAGE = Path(__file__).parents[2] / "docs" / "operators" / "providers" / "qradar.md"
TEXT = PAGE.read_text(encoding="utf-8")
NEEDED = {"url": "https://qradar.example.com", "token": "a secret"}


def test_the_example_is_valid():
    [example] = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
    file = tomllib.loads(example)
    [settings] = file["providers"].values()
    assert file["enabled"] == [settings.pop("plugin")]
    make_settings(QRadar, **{**settings, "token": "a secret"})


def test_the_example_of_properties_is_valid():
    [example] = re.findall(r"such as `(\{ url = .+?\})`", TEXT)
    properties = tomllib.loads(f"it = {example}")["it"]
    assert make_settings(QRadar, **NEEDED, event_properties=properties)


@pytest.mark.parametrize("permission", QRadar.permissions)
def test_every_permission_is_told(permission):
    assert f"| {permission.partition(' (')[0]} |" in TEXT


def test_every_offense_type_is_told():
    text = TEXT.casefold()
    assert [
        type_ for type_ in OFFENSE_TYPES if type_.replace(" ", "") not in text.replace(" ", "")
    ] == []


def test_every_field_of_an_event_is_told():
    fields = {field for its in (*ADDRESS_FIELDS.values(), *ENTITY_FIELDS.values()) for field in its}
    assert [field_ for field_ in fields if f"`{field_}`" not in TEXT] == []


def test_bounds_are_told():
    assert f"up to {MAX_ADDRESSES} of each" in TEXT
    assert f"about {MAX_NOTE_LENGTH:,} bytes" in TEXT
