"""Node-RED page: statements about the flow."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

from tocsin_plugins.webhook import Webhook

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/soar/node-red.md").read_text(encoding="utf-8")
FLOW = (ROOT / "examples/node-red/flow.json").read_text(encoding="utf-8")
NAMES = {node.get("name", node.get("label")) for node in json.loads(FLOW)}


def test_the_page_names_what_the_flow_reads_from_the_environment():
    read = set(re.findall(r"TOCSIN_\w+", FLOW))
    assert set(re.findall(r"^\| `(TOCSIN_\w+)`", PAGE, re.MULTILINE)) == read


def test_the_nodes_that_the_page_names_are_there():
    named = set(re.findall(r"node \*([A-Z][a-z ]+\??)\*", re.sub(r"\s+", " ", PAGE)))
    assert len(named) == 3
    assert named <= NAMES


def test_the_flow_holds_no_secret():
    assert "credentials" not in {key for node in json.loads(FLOW) for key in node}
    assert not re.search(r"whsec_\w|cs_live_\w|cl_\w", FLOW)


def test_the_destination_is_valid(monkeypatch):
    monkeypatch.setenv("NODE_RED_SECRET", "whsec_" + "QUJDREVG" * 5)
    [sample] = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    [settings] = tomllib.loads(sample)["destinations"].values()
    assert Webhook.Settings(**settings).events == ("incident-alert",)
