"""Pages of Sentinel and Defender: examples, tables and the role."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

import pytest

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
