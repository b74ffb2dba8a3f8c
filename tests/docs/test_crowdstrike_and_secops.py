"""Pages of CrowdStrike and SecOps: permissions and entity fields."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tocsin.testing import make_settings
from tocsin_connectors.siem.crowdstrike import CrowdStrike, mapping, search
from tocsin_connectors.siem.crowdstrike.settings import FALCON_CLOUDS
from tocsin_connectors.siem.secops import SecOps
from tocsin_connectors.siem.secops.mapping import ENTITY_FIELDS

FOLDER = Path(__file__).parents[2] / "docs" / "operators" / "providers"
PAGES = {
    kind: (FOLDER / f"{kind.__name__.lower()}.md").read_text(encoding="utf-8")
    for kind in (CrowdStrike, SecOps)
}
each_page = pytest.mark.parametrize("kind", PAGES, ids=lambda kind: kind.__name__)


@each_page
def test_the_example_is_valid(kind):
    example = re.findall(r"```toml\n(.*?)```", PAGES[kind], re.DOTALL)[0]
    file = tomllib.loads(example)
    [settings] = file["providers"].values()
    assert file["enabled"] == [settings.pop("plugin")]
    make_settings(
        kind, **{name: value if isinstance(value, str) else "x" for name, value in settings.items()}
    )


@each_page
def test_every_permission_is_told(kind):
    for permission in kind.permissions:
        assert permission.partition(" (")[0] in PAGES[kind]


def test_every_cloud_is_told():
    for name, cloud in FALCON_CLOUDS.items():
        assert f"| `{name}` | `{cloud.api}` |" in PAGES[CrowdStrike]


@pytest.mark.parametrize(
    "fields", [mapping.ENTITY_FIELDS, search.EVENT_FIELDS], ids=["alerts", "events"]
)
def test_every_place_of_crowdstrike_is_told(fields):
    for place in (place for places in fields.values() for place in places):
        first, _, rest = place.partition(".")
        known = f"`{place}`", f"`{first}`", f"`{rest}`"
        assert any(name in PAGES[CrowdStrike] for name in known), place


def test_every_place_of_secops_is_told():
    for place in (place for places in ENTITY_FIELDS.values() for place in places):
        without_noun = place.partition(".")[2]
        ends = {place, without_noun, without_noun.rpartition(".")[2], place.rpartition(".")[0]}
        assert any(f"`{end}`" in PAGES[SecOps] for end in ends), place
