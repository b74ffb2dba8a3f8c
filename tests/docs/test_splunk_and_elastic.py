"""Pages of Splunk and Elastic: privileges, fields and valid examples."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

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
