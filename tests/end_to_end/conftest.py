"""Fixtures of the end-to-end tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import URL

from .service import Receiver, Sensor, Service


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
    service = Service(tmp_path, database_url, receiver.destination)
    yield service
    await service.stop()
