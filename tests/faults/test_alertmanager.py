"""Groups of a real Alertmanager that are larger than what receivers usually accept."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import func, select

import api_server
from alertmanager import WHY_NOT, open_alertmanager
from api_server import PUSH_TOKEN, PUSHED, open_api
from tocsin.accounting import Period, report_period
from tocsin.clock import SystemClock
from tocsin.incidents import list_coverage
from tocsin.store.tables import incidents

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT)),
    pytest.mark.parametrize("database_url", ["sqlite"], indirect=True),
]
MIB = 2**20
SENT = "alertmanager_notifications_total"
FAILED = "alertmanager_notifications_failed_total"


def alerts(count: int, size: int) -> list[dict]:
    """Return alerts of one group, each with a description of so many bytes."""
    return [
        {
            "labels": {"alertname": "Flood", "severity": "critical", "instance": f"host-{number}"},
            "annotations": {"summary": f"Flood at host {number}", "description": "x" * size},
        }
        for number in range(count)
    ]


@pytest.fixture
async def api(database, monkeypatch):
    monkeypatch.setattr(api_server, "PUSH_FORMAT", "alertmanager")
    async with open_api(database, SystemClock()) as api:
        yield api


@pytest.fixture
async def manager(api, tmp_path: Path):
    url = str(api.client.make_url(f"/api/push/{PUSHED}"))
    async with open_alertmanager(tmp_path, url, PUSH_TOKEN) as manager:
        yield manager


async def stored(api) -> int:
    return await api.services.database.read(
        lambda connection: connection.scalar(select(func.count()).select_from(incidents))
    )


async def test_a_group_of_several_mebibytes_is_stored_without_loss(api, manager):
    await manager.post(alerts(2_000, 3_000))  # 6 MiB; beyond 1 MiB they were lost
    async with asyncio.timeout(60):
        while await stored(api) < 2_000:  # noqa: ASYNC110 - another process sends them
            await asyncio.sleep(0.2)
    assert await manager.count(FAILED, integration="webhook") == 0


async def test_a_group_that_is_too_large_is_an_anomaly(api, manager):
    await manager.post(alerts(6_000, 3_000))  # 18 MiB
    async with asyncio.timeout(60):
        while not await manager.count(FAILED, integration="webhook"):  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.2)
    await api.services.inbox.flush()
    found = await api.services.database.read(list_coverage, PUSHED, 10)
    assert "too-large" in [row["outcome"] for row in found]
    now = SystemClock().now()
    period = Period(now - timedelta(hours=1), now)
    report = await api.services.database.read(report_period, period, now)
    assert [one["kind"] for one in report["unaccounted"]] == ["refused-push"]
