"""Pages of Splunk and Elastic: settings with defaults, and valid examples."""

from __future__ import annotations

import json
import re
import tomllib
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic_core import PydanticUndefined

from tocsin.testing import make_settings
from tocsin_connectors.siem.elastic import Elastic
from tocsin_connectors.siem.elastic.mapping import ENTITY_FIELDS as ECS
from tocsin_connectors.siem.splunk import Splunk
from tocsin_connectors.siem.splunk.mapping import ENTITY_FIELDS as CIM

FOLDER = Path(__file__).parents[2] / "docs" / "operators" / "providers"
PAGES = {
    kind: (FOLDER / f"{kind.__name__.lower()}.md").read_text(encoding="utf-8")
    for kind in (Splunk, Elastic)
}
each_page = pytest.mark.parametrize("kind", PAGES, ids=lambda kind: kind.__name__)
LENGTHS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def rows(page: str) -> dict[str, str]:
    """Return the table of settings: what stands there as the default of each."""
    [table] = re.findall(r"^\| Setting \|.*?\n\n", page, re.DOTALL | re.MULTILINE)
    found = re.findall(r"^\| (`.+?) \| (.+?) \|", table, re.MULTILINE)
    return {name: told for names, told in found for name in re.findall(r"`(\w+)`", names)}


def meant(told: str) -> str:
    """Return a default of the table, with every length of time in seconds."""
    told = "" if told == "none" else told.replace("`", "")
    as_seconds = re.compile(r"\b(\d+)([smhd])\b")
    return as_seconds.sub(lambda match: f"{int(match[1]) * LENGTHS[match[2]]}s", told)


def written(default: object) -> str:
    """Return a default as `meant` has it."""
    match default:
        case None:
            return ""
        case tuple():
            return ", ".join(map(written, default))
        case timedelta():
            return f"{default // timedelta(seconds=1)}s"
    return str(default).lower()


@each_page
def test_every_setting_is_told_with_its_default(kind):
    fields = {name: field for name, field in kind.Settings.model_fields.items() if name != "plugin"}
    told = rows(PAGES[kind])
    assert sorted(told) == sorted(fields)
    for name, field in fields.items():
        is_needed = field.default is PydanticUndefined
        assert meant(told[name]) == ("required" if is_needed else written(field.default)), name


@each_page
def test_the_example_is_valid(kind):
    [example] = re.findall(r"```toml\n(.*?)```", PAGES[kind], re.DOTALL)
    file = tomllib.loads(example)
    [settings] = file["providers"].values()
    assert file["enabled"] == [settings.pop("plugin")]
    secrets = dict.fromkeys(kind.Settings.secret_fields(), "a secret")
    assert make_settings(kind, **{**settings, **secrets})


def test_the_key_of_the_page_has_what_is_asked_for():
    [body] = re.findall(r"```json\nPOST /_security/api_key\n(.*?)```", PAGES[Elastic], re.DOTALL)
    [role] = json.loads(body)["role_descriptors"].values()
    names = [name for index in role["indices"] for name in index["names"]]
    settings = Elastic.Settings.model_fields
    assert names == [".alerts-security.alerts-default", *settings["event_indexes"].default]


@pytest.mark.parametrize(("kind", "names"), [(Splunk, CIM), (Elastic, ECS)])
def test_the_fields_of_entities_are_told(kind, names):
    page = PAGES[kind]
    short = {"_ip", "_host", "_dns", "_nt_host", "_translated_ip"}  # told as endings
    for name in {name for its in names.values() for name in its}:
        is_ending = any(name.endswith(ending) for ending in short) and kind is Splunk
        parts = name.split(".") if kind is Elastic else [name]
        assert f"`{name}`" in page or is_ending or f"`{parts[-1]}`" in page, name
