"""Fixtures of the end-to-end tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import URL

from crowdsec_server import MACHINE, PASSWORD, LocalApi

from .service import ForkedService, Receiver, Sensor, Service


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with Receiver() as receiver:
        yield receiver


@pytest.fixture
def sensor(tmp_path: Path) -> Sensor:
    return Sensor(tmp_path / "eve.json")


@pytest.fixture
async def service(tmp_path: Path, database_url: URL, receiver: Receiver) -> AsyncIterator[Service]:
    """A service on either database; the test starts it, and whatever is left running is stopped."""
    service = ForkedService(tmp_path, database_url, receiver.destination)
    yield service
    await service.stop()


@pytest.fixture
async def local_api(tmp_path: Path) -> AsyncIterator[LocalApi]:
    async with LocalApi(tmp_path / "crowdsec") as local_api:
        yield local_api


@pytest.fixture
def reading_it(service: Service, local_api: LocalApi, receiver: Receiver) -> Service:
    """A service that reads the Local API."""
    (service.folder / "password").write_text(PASSWORD)
    (service.folder / "plugins.toml").write_text(
        f"""
        enabled = ["crowdsec", "webhook"]
        [providers.edge]
        plugin = "crowdsec"
        url = "{local_api.url}"
        machine_id = "{MACHINE}"
        password = {{ file = "password" }}
        settle_delay = "0s"
        poll_interval = "100ms"
        """
        + receiver.destination
    )
    return service
