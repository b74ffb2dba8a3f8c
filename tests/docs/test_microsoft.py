"""Pages of Sentinel and Defender: settings, examples and the role."""

from __future__ import annotations

import json
import re
import tomllib
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pydantic_core import PydanticUndefined

from tocsin import EntityKind
from tocsin.testing import make_settings
from tocsin_connectors.microsoft.clouds import MICROSOFT_CLOUDS
from tocsin_connectors.microsoft.resources import READ_PERMISSIONS, find_missing_actions
from tocsin_connectors.siem.defender import Defender
from tocsin_connectors.siem.microsoft.tables import HUNTING_TABLES
from tocsin_connectors.siem.sentinel import Sentinel
from tocsin_connectors.siem.sentinel.permissions import (
    QUERY_LOGS,
    READ_INCIDENTS,
    WRITE_COMMENTS,
    WRITE_INCIDENTS,
)
from tocsin_connectors.siem.sentinel.tables import WORKSPACE_TABLES

FOLDER = Path(__file__).parents[2] / "docs" / "operators" / "providers"
PAGES = {
    kind: (FOLDER / f"{kind.__name__.lower()}.md").read_text(encoding="utf-8")
    for kind in (Sentinel, Defender)
}
each_page = pytest.mark.parametrize("kind", PAGES, ids=lambda kind: kind.__name__)
OF_THE_CLOUD = {"authority", "url", "logs_url"}
LENGTHS = {"h": timedelta(hours=1), "m": timedelta(minutes=1), "s": timedelta(seconds=1)}


def told(page: str) -> dict[str, str]:
    """Return what the table of settings has as the default of each."""
    [table] = re.findall(r"^\| Setting \|.*?\n\n", page, re.DOTALL | re.MULTILINE)
    rows = re.findall(r"^\| (`.+?) \| (.+?) \|", table, re.MULTILINE)
    return {name: default for names, default in rows for name in re.findall(r"`(\w+)`", names)}


def lengths(text: str) -> list[timedelta]:
    return [int(count) * LENGTHS[unit] for count, unit in re.findall(r"`(\d+)([hms])`", text)]


@each_page
def test_every_setting_is_told_with_its_default(kind):
    fields = {name: field for name, field in kind.Settings.model_fields.items() if name != "plugin"}
    page = told(PAGES[kind])
    assert sorted(page) == sorted(fields)
    for name, field in fields.items():
        match field.default:
            case _ if name in OF_THE_CLOUD:
                assert page[name] == "those of the cloud"
            case _ if field.default is PydanticUndefined:
                assert page[name] == "required", name
            case None | {}:
                assert page[name] == "none", name
            case timedelta():
                assert lengths(page[name]) == [field.default], name
            case tuple():
                assert lengths(page[name]) == list(field.default), name
            case default:
                assert page[name] == f"`{str(default).lower()}`", name


@each_page
def test_the_examples_are_valid(kind):
    examples = re.findall(r"```toml\n(.*?)```", PAGES[kind], re.DOTALL)
    file = tomllib.loads("\n".join(examples))
    [settings] = file["providers"].values()
    assert file["enabled"] == [settings.pop("plugin")]
    settings |= dict.fromkeys(kind.Settings.secret_fields(), "a secret")
    assert make_settings(kind, **settings)


@each_page
def test_the_addresses_of_the_clouds_are_told(kind):
    [table] = re.findall(r"^\| `cloud` \| Sign-in.*?\n\n", PAGES[kind], re.DOTALL | re.MULTILINE)
    rows = table.strip().splitlines()[2:]
    for name, cloud in MICROSOFT_CLOUDS.items():
        [row] = [row for row in rows if f"`{name}`" in row.split("|")[1]]
        for part in kind.Settings.addresses.values():
            assert f"`{urlsplit(getattr(cloud, part)).hostname}`" in row


@pytest.mark.parametrize(
    ("kind", "tables"), [(Sentinel, WORKSPACE_TABLES), (Defender, HUNTING_TABLES)]
)
def test_the_tables_are_told(kind, tables):
    for table in tables:
        assert f"`{table.name}`" in PAGES[kind]


def test_the_kinds_of_entities_are_told():
    line = next(line for line in PAGES[Sentinel].splitlines() if line.startswith("The kinds are"))
    assert set(re.findall(r"`(\w+)`", line)) == {kind.value for kind in EntityKind}


def test_the_role_of_the_page_allows_what_is_needed_and_no_more():
    [role] = re.findall(r"```json\n(.*?)```", PAGES[Sentinel], re.DOTALL)
    given = json.loads(role)
    roles = [{"actions": given["Actions"], "notActions": given["NotActions"]}]
    assert (
        list(
            find_missing_actions(
                roles,
                [READ_INCIDENTS, QUERY_LOGS, READ_PERMISSIONS, WRITE_COMMENTS, WRITE_INCIDENTS],
            )
        )
        == []
    )
    others = [
        "Microsoft.SecurityInsights/incidents/delete",
        "Microsoft.SecurityInsights/alertRules/write",
    ]
    assert list(find_missing_actions(roles, others)) == others
