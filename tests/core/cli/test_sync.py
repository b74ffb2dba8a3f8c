"""`tocsin providers` and `tocsin sync`, as an operator sees them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

FILE = """
enabled = ["suricata", "push", "webhook"]

[providers.edge]
plugin = "suricata"
path = "eve.json"

[providers.scripts]
plugin = "push"
format = "incident"
token = { env = "PUSH_TOKEN" }

[destinations.soc]
plugin = "webhook"
url = "https://soc.example.org/hook"
secret = { env = "NOT_NEEDED_HERE" }
"""
SECRETS = {"PUSH_TOKEN": "a-token-of-our-scripts"}
ASKED = ["--from", "2025-11-01T00:00:00Z", "--to", "2025-11-08T00:00:00Z", "--detach"]


@pytest.fixture(autouse=True)
def configured(tocsin, tmp_path: Path) -> None:
    (tmp_path / "plugins.toml").write_text(FILE)
    assert tocsin("db", "upgrade")[0] == 0


def test_providers_are_listed_before_anything_was_read(tocsin):
    status, out, _ = tocsin("providers", **SECRETS)
    assert status == 0
    assert [line.split("\t")[:3] for line in out.splitlines()] == [
        ["edge", "suricata", "waiting"],
        ["scripts", "push", "pushed"],
    ]


def test_a_provider_is_read_for_its_author_and_nothing_is_stored(tocsin, tmp_path):
    alert = {
        "timestamp": "2026-11-20T10:00:00.000000+0000",
        "event_type": "alert",
        "src_ip": "198.51.100.7",
        "alert": {"signature": "Port scan", "signature_id": 7, "severity": 1},
    }
    (tmp_path / "eve.json").write_text(f"{json.dumps(alert)}\nno record\n")
    status, out, errors = tocsin("providers", "read", "edge", **SECRETS)
    kinds = [line.split("\t")[2] for line in out.splitlines()]
    assert (status, errors) == (0, "")
    assert {"incident", "rejected", "covered", "page"} <= set(kinds)
    assert "High, New, entities: 1, Port scan" in out
    assert tocsin("quarantine") == (0, "", "")
    _, out, _ = tocsin("providers", "--json", **SECRETS)
    assert json.loads(out)[0]["state"] == "waiting"


def test_pages_without_records_are_only_counted(tocsin, tmp_path):
    (tmp_path / "eve.json").write_text("")
    status, out, _ = tocsin("providers", "read", "edge", **SECRETS)
    assert status == 0
    assert [line.split("\t")[2:] for line in out.splitlines()] == [
        ["empty", "", "pages without records: 1"]
    ]


def test_a_provider_that_cannot_be_read_says_why(tocsin):
    status, _, errors = tocsin("providers", "read", "egde", **SECRETS)
    assert (status, errors) == (
        2,
        "NAME: found 'egde'; use one of: edge, scripts; did you mean 'edge'?\n",
    )
    status, _, errors = tocsin("providers", "read", "edge", "--stream", "old", **SECRETS)
    assert status == 2
    assert "--stream: found 'old'; use one of: changed" in errors


def test_a_provider_whose_plugin_cannot_be_imported_says_why(tocsin, tmp_path):
    (tmp_path / "broken_plugin.py").write_text("import nothing_of_this_name\n")
    folder = tmp_path / "broken_plugin-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-plugin\nVersion: 1\n")
    (folder / "entry_points.txt").write_text("[tocsin.plugins]\nbroken = broken_plugin\n")
    enabled = FILE.replace("enabled = [", 'enabled = ["broken", ')
    (tmp_path / "plugins.toml").write_text(f'{enabled}\n[providers.far]\nplugin = "broken"\n')
    status, _, errors = tocsin("providers", "read", "far", **SECRETS)
    assert status == 2
    assert "providers.far: its plugin 'broken' was not loaded" in errors
    assert "nothing_of_this_name" in errors


def test_a_backfill_is_asked_for_listed_and_cancelled(tocsin):
    status, out, _ = tocsin("sync", "backfill", "--provider", "edge", *ASKED, **SECRETS)
    id_, *rest = out.rstrip("\n").split("\t")
    assert (status, rest[:5]) == (
        0,
        ["edge", "operator", "running", "2025-11-01T00:00:00.000Z", "2025-11-08T00:00:00.000Z"],
    )
    assert tocsin("sync", "cancel", id_) == (0, "", "")
    [record] = json.loads(tocsin("sync", "backfills", "--provider", "edge", "--json")[1])
    assert (record["id"], record["state"]) == (id_, "cancelled")


@pytest.mark.parametrize(
    ("provider", "words"),
    [
        ("egde", "--provider: found 'egde'; use one of: edge, scripts"),
        ("scripts", "--provider: the plugin 'push' does not support backfills"),
    ],
)
def test_a_provider_that_has_no_past_is_refused(tocsin, provider, words):
    status, out, errors = tocsin("sync", "backfill", "--provider", provider, *ASKED, **SECRETS)
    assert (status, out) == (2, "")
    assert words in errors


def test_what_is_yet_to_come_is_not_of_the_past(tocsin):
    window = ("--from", "7d", "--to", "2999-01-01T00:00:00Z")
    status, _, errors = tocsin("sync", "backfill", "--provider", "edge", *window, **SECRETS)
    assert (status, errors) == (
        2,
        "--to: found '2999-01-01T00:00:00Z'; use a time in the past\n",
    )


def test_what_is_not_there_cannot_be_cancelled(tocsin):
    assert tocsin("sync", "cancel", "bkf_1") == (2, "", "no backfill with ID 'bkf_1'\n")
