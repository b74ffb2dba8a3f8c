"""Metrics page and dashboard: exactly the metrics of a node."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from tocsin.delivery.metrics.meters import OUTCOMES
from tocsin.node import open_node
from tocsin.settings import Settings

OPERATORS = Path(__file__).parents[2] / "docs" / "operators"
PAGE = (OPERATORS / "metrics.md").read_text(encoding="utf-8")
DASHBOARD = json.loads((OPERATORS / "grafana.json").read_text(encoding="utf-8"))
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
NAME = re.compile(r"\b(?:tocsin|process)_[a-z_]+[a-z]\b(?![-:])")
SERIES = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"], "gauge": [""]}


@pytest.fixture
async def families(tmp_path, clock) -> list[Metric]:
    """What a node gives that has nothing to do."""
    (tmp_path / "plugins.toml").write_text("")
    settings = Settings(data_dir=tmp_path, plugins_file=tmp_path / "plugins.toml")
    async with open_node(settings, clock) as node:
        exposed = await node.api.services.metrics.expose()
    return list(text_string_to_metric_families(exposed.decode()))


def told_name(family: Metric) -> str:
    return f"{family.name}_total" if family.type == "counter" else family.name


def expressions() -> Iterator[str]:
    for panel in PANELS:
        yield from (target["expr"] for target in panel["targets"])
    for variable in DASHBOARD["templating"]["list"]:
        yield variable.get("definition", "")


async def test_every_metric_is_told_with_its_type_and_words_and_no_other(families):
    rows = re.findall(r"^\| `(tocsin_\w+)` \| (\w+) \|[^|]*\| (.*) \|$", PAGE, re.MULTILINE)
    given = {
        (told_name(family), family.type, family.documentation)
        for family in families
        if family.name.startswith("tocsin_")
    }
    assert set(rows) == given
    assert len(rows) == len(given)


def series(families: list[Metric]) -> set[str]:
    return {family.name + suffix for family in families for suffix in SERIES[family.type]}


async def test_the_page_names_only_metrics_that_there_are(families):
    named = set(NAME.findall(PAGE))
    assert named <= series(families) | {told_name(family) for family in families}
    process = {told_name(family) for family in families if family.name.startswith("process_")}
    assert process <= named


async def test_the_dashboard_asks_only_for_metrics_that_there_are(families):
    asked = {name for expression in expressions() for name in NAME.findall(expression)}
    assert asked <= series(families)
    assert {name.partition("_")[0] for name in asked} == {"tocsin", "process"}


async def test_the_dashboard_shows_every_metric_of_ours(families):
    asked = " ".join(expressions())
    ours = [family.name for family in families if family.name.startswith("tocsin_")]
    assert [name for name in ours if name not in asked] == []


def test_every_outcome_is_told():
    told = PAGE.partition("\n| `outcome` |")[2].partition("\n\n")[0]
    assert tuple(re.findall(r"^\| `(\w+)` \|", told, re.MULTILINE)) == OUTCOMES


def test_the_dashboard_reads_the_prometheus_that_is_chosen():
    [chosen] = [
        variable for variable in DASHBOARD["templating"]["list"] if variable["type"] == "datasource"
    ]
    assert chosen["query"] == "prometheus"
    source = {"type": "prometheus", "uid": f"${{{chosen['name']}}}"}
    for panel in PANELS:
        assert panel["datasource"] == source
        assert all(target["datasource"] == source for target in panel["targets"])


def test_no_panel_lies_on_another():
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    for one, other in combinations((panel["gridPos"] for panel in DASHBOARD["panels"]), 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        above = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or above
        assert one["x"] + one["w"] <= 24
