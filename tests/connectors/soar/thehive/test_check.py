"""Results of `tocsin check` for TheHive."""

from __future__ import annotations

import asyncio
import os
import sys

import pytest

from tocsin.testing import ManualClock

from .simulator import KEY, TheHiveSimulator

FILE = """
enabled = ["thehive", "webhook"]

[destinations.hive]
plugin = "thehive"
url = "{url}"
api_key = {{ env = "THEHIVE_KEY" }}
allow_networks = ["127.0.0.0/8"]

[destinations.other]
plugin = "webhook"
url = "https://soar.example.com/hook"
secret = {{ env = "THEHIVE_KEY" }}
sevrity = "High"
"""
OVERSIZED = """{% extends "shipped/thehive/incident-alert.json.j2" %}
{% block title %}{{ "long " * 200 }}{% endblock %}"""


async def check(folder, url) -> tuple[int, str]:
    (folder / "plugins.toml").write_text(FILE.format(url=url))
    mine = folder / "templates" / "thehive"
    mine.mkdir(parents=True)
    (mine / "incident-alert.json.j2").write_text(OVERSIZED)
    usual = {name: item for name, item in os.environ.items() if not name.startswith("TOCSIN_")}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tocsin", "check"),
        cwd=folder,
        env={**usual, "THEHIVE_KEY": KEY, "TOCSIN_TEMPLATES_DIR": str(mine.parent)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    _, errors = await process.communicate()
    return process.returncode or 0, errors.decode()


@pytest.mark.full
async def test_check_reports_permission_field_and_template_size(tmp_path):
    async with TheHiveSimulator(ManualClock()) as simulator:
        simulator.lacks = {"manageAlert/create"}
        status, errors = await check(tmp_path, simulator.url)
    assert status == 2
    assert "destinations.hive: tocsin@example.com lacks the permission manageAlert/create" in errors
    assert "destinations.other.sevrity" in errors
    assert "destinations.hive: thehive, incident-alert: title: " in errors
    assert "is too long" in errors
