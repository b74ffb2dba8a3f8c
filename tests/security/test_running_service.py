"""Conditions of an admin against a service in a process of its own, over its HTTP API."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from time import monotonic

import aiohttp
import pytest
from sqlalchemy import URL, update

from end_to_end.service import SECRET, Receiver, Sensor, Service
from faults.station import open_station
from tocsin.clock import SystemClock
from tocsin.conditions import Condition
from tocsin.store.tables import api_keys

from .attacks import CONDITIONS

DESTINATIONS = "/api/admin/destinations"
KEYS = "/api/admin/api-keys"
SECONDS = 3.0
"""Longest time of a request; a condition once held every write for 45 s and more."""
MEMORY = 100 * 2**20
"""Most memory that the process may take beyond what it had before the attacks."""


class Admin:
    """Asks a service as an admin, and keeps how long the slowest answer took."""

    def __init__(self, service: Service, token: str) -> None:
        self._service = service
        self._headers = {"Authorization": f"Bearer {token}"}
        self.slowest = 0.0

    async def ask(self, method: str, path: str, **body: object) -> tuple[int, dict]:
        """Return status and body of the answer."""
        started = monotonic()
        async with (
            aiohttp.ClientSession(headers=self._headers) as session,
            session.request(method, self._service.url + path, json=body or None) as response,
        ):
            answer = await response.read()
        self.slowest = max(self.slowest, monotonic() - started)
        return response.status, json.loads(answer or b"{}")

    async def write(self) -> None:
        """Do one write of every kind, and expect that the service stays ready."""
        path = f"{DESTINATIONS}/victim"
        assert (await self.ask("PATCH", path, settings={"when": "data.n == 1"}))[0] == 200
        status, key = await self.ask("POST", KEYS, name="k", scopes=["incidents:read"])
        assert status == 201
        assert (await self.ask("DELETE", f"{KEYS}/{key['key_id']}"))[0] == 200
        status, ready = await self.ask("GET", "/readyz")
        assert (status, ready["fault"]) == (200, None)


@pytest.fixture
async def service(tmp_path: Path, migrated_url: URL, receiver: Receiver) -> AsyncIterator[Service]:
    service = Service(tmp_path, migrated_url, receiver.destination)
    service.environment |= {
        "TOCSIN_ALLOW_NETWORKS": "127.0.0.0/8",
        "TOCSIN_RATE_LIMIT": "100000",
        "TOCSIN_RATE_BURST": "100000",
    }
    yield service
    await service.kill()


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with Receiver() as receiver:
        yield receiver


def settings(receiver: Receiver, when: str) -> dict[str, object]:
    """Return the settings of a webhook to a path of the receiver that does not exist."""
    url = f"http://127.0.0.1:{receiver.port}/nowhere"
    reached = {"url": url, "secret": SECRET, "allow_networks": ["127.0.0.0/8"]}
    return reached | {"when": when, "retry_schedule": ["1h"]}


def read_memory(service: Service) -> int:
    """Return the most memory that the process ever had."""
    [line] = [
        line
        for line in Path(f"/proc/{service.pid}/status").read_text().splitlines()
        if line.startswith("VmHWM")
    ]
    return int(line.split()[1]) * 1_024


async def until_routed(admin: Admin, receiver: Receiver, incidents: int) -> None:
    """Write until the events of so many incidents have arrived at the file's destination."""
    async with asyncio.timeout(120):
        while len(receiver.numbers) < incidents:
            await admin.write()
            await asyncio.sleep(0.2)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_no_condition_takes_writes_from_a_router(tmp_path, database, receiver):
    async with open_station(tmp_path, database, SystemClock()) as station:
        url = f"http://127.0.0.1:{receiver.port}/hook"
        for number, text in enumerate(CONDITIONS):
            with suppress(ValueError):
                Condition(text)
                await station.add(f"attack-{number}", url, when=text)
        await station.add("soc", url)
        await station.emit(1)
        slowest = 0.0
        while not receiver.received:
            started = monotonic()
            await database.write(
                lambda connection: connection.execute(update(api_keys).values(name="x"))
            )
            slowest = max(slowest, monotonic() - started)
            await asyncio.sleep(0.01)
        assert slowest < SECONDS


@pytest.mark.full
@pytest.mark.timeout(300)
async def test_no_condition_takes_writes_readiness_or_the_end_from_a_service(
    service, receiver, tmp_path, record_property
):
    sensor = Sensor(tmp_path / "eve.json")
    sensor.write(1)
    await service.start()
    status, token, errors = await service.command("admin", "token")
    assert status == 0, errors
    admin = Admin(service, token.strip())
    before = read_memory(service)

    body = {"name": "victim", "plugin": "webhook", "settings": settings(receiver, "false")}
    status, answer = await admin.ask("POST", DESTINATIONS, **body)
    assert status == 201, answer
    statuses = Counter()
    for number, text in enumerate(CONDITIONS):
        body = {"name": f"attack-{number}", "plugin": "webhook"}
        made, _ = await admin.ask("POST", DESTINATIONS, **body, settings=settings(receiver, text))
        changed, _ = await admin.ask("PATCH", f"{DESTINATIONS}/victim", settings={"when": text})
        assert (made, changed) in {(201, 200), (422, 422)}, text
        statuses[made] += 1
    assert statuses[201] > 20
    await admin.write()

    sensor.write(2)
    await until_routed(admin, receiver, 3)
    await service.kill()
    sensor.write(2)
    await service.start(is_applied=True)
    await until_routed(admin, receiver, 5)

    assert admin.slowest < SECONDS
    assert read_memory(service) < before + MEMORY
    started = monotonic()
    assert await service.stop() == 0
    assert monotonic() - started < 10
    record_property("cases", 2 * len(CONDITIONS))
