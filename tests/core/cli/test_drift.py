"""Vendor drift in `tocsin check` and `tocsin providers`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import insert
from tests.connectors.crowdstrike.simulator import CLIENT, FalconSimulator

from tocsin import Severity
from tocsin.store.tables import record_shapes
from tocsin.testing import Case, ManualClock, Siem

DRIFT = {
    "kind": "changed",
    "field": "severity_name",
    "problem": "missing",
    "expected": "string",
    "found": None,
    "since": "2026-11-20T05:33:01.123Z",
    "records": 48,
    "appeared": ["severity_label"],
}


@pytest.fixture
async def falcon(tmp_path: Path) -> AsyncIterator[FalconSimulator]:
    """A SIEM with one alert, and the provider that reads it."""
    clock = ManualClock(datetime.now(UTC))
    at = clock.now() - timedelta(minutes=10)
    async with FalconSimulator(Siem(clock)) as simulator:
        case = {"title": "t", "severity": Severity.HIGH, "created_at": at, "changed_at": at}
        simulator.siem.put(Case(id="a", number=1, **case))
        (tmp_path / "plugins.toml").write_text(
            'enabled = ["crowdstrike"]\n[providers.falcon]\nplugin = "crowdstrike"\n'
            f'url = "{simulator.url}"\nclient_id = "{CLIENT["client_id"]}"\n'
            'client_secret = { env = "FALCON" }\n'
        )
        yield simulator


@pytest.fixture
def run(tocsin, on_database, falcon):
    async def run(*arguments: str) -> tuple[int, str, str]:
        return await asyncio.to_thread(tocsin, *arguments, FALCON=CLIENT["client_secret"])

    return run


@pytest.mark.parametrize(
    ("members", "warnings"),
    [
        ({}, []),
        ({"status": None}, ["status is missing in the latest records (compared: 1)"]),
        ({"display_name": ["x"]}, ["display_name is string[], not string, in the latest records"]),
    ],
)
async def test_live_records_are_compared_with_the_contract(run, falcon, members, warnings):
    falcon.members = members
    status, _, errors = await run("check")
    assert status == 0
    lines = [line for line in errors.splitlines() if "warning" in line]
    assert len(lines) == len(warnings)
    for line, warning in zip(lines, warnings, strict=True):
        assert line.startswith(f"providers.falcon: warning: changed: {warning}")


async def test_what_was_recorded_is_shown(run, on_database):
    def add(connection) -> None:
        row = {"provider": "falcon", "kind": "changed", "shape": {}, "drift": [DRIFT]}
        connection.execute(insert(record_shapes), row | {"updated_at": datetime.now(UTC)})

    await asyncio.to_thread(on_database, add)
    warning = "changed: severity_name missing since 2026-11-20T05:33:01.123Z"
    assert f"providers.falcon: warning: {warning}" in (await run("check"))[2]
    assert (await run("providers"))[1].rstrip("\n").endswith(f"\t{warning}")
    [shown] = json.loads((await run("providers", "--json"))[1])
    assert shown["drift"] == [DRIFT]


async def test_ends_of_apis_are_shown_though_the_siem_is_unreachable(tocsin, on_database, tmp_path):
    (tmp_path / "plugins.toml").write_text(
        'enabled = ["sentinel"]\n[providers.cloud]\nplugin = "sentinel"\n'
        'tenant_id = "contoso.example"\nclient_id = "a1b2c3d4-0000-4000-8000-00000000c0de"\n'
        'client_secret = { env = "SECRET" }\n'
        'subscription = "8f2c0d34-5f0e-4f0b-9c39-0d6f6a2e1b12"\n'
        'resource_group = "rg"\nworkspace = "work-1"\n'
        'workspace_id = "8f2c0d34-5f0e-4f0b-9c39-0d6f6a2e1b13"\n'
        'authority = "http://127.0.0.1:9"\nurl = "http://127.0.0.1:9"\n'
    )
    status, _, errors = await asyncio.to_thread(tocsin, "check", SECRET="a secret")
    assert status == 1
    assert "providers.cloud: warning: Microsoft Sentinel in the Azure portal ends on" in errors
