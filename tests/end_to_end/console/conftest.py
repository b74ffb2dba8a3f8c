"""One service and one browser for all who look at the console, each in a window of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Page
from sqlalchemy import URL
from tests.end_to_end.service import ForkedService, Receiver, Sensor, Service, until

from browser import open_browser, open_window, sign_in

shared = pytest_asyncio.fixture(scope="package", loop_scope="package")
own = pytest_asyncio.fixture(loop_scope="package")


@pytest.fixture(scope="package")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("console")


@shared
async def receiver() -> AsyncIterator[Receiver]:
    async with Receiver() as receiver:
        yield receiver


@pytest.fixture(scope="package")
def sensor(folder: Path) -> Sensor:
    return Sensor(folder / "eve.json")


@shared
async def service(folder: Path, receiver: Receiver, sensor: Sensor) -> AsyncIterator[Service]:
    """A service with a few incidents, which have arrived."""
    database = URL.create("sqlite", database=str(folder / "tocsin.db"))
    service = ForkedService(folder, database, receiver.destination)
    # browsers use passkeys at host names alone
    service.environment["TOCSIN_BASE_URL"] = f"http://localhost:{service.port}"
    sensor.write(3)
    await service.start()
    await until(lambda: len(receiver.numbers) == 3)
    yield service
    await service.stop()


@shared
async def token(service: Service) -> str:
    """An admin's token."""
    status, output, errors = await service.command("admin", "token")
    assert status == 0, errors
    return output.strip()


@shared
async def browser() -> AsyncIterator[Any]:
    async with open_browser() as browser:
        yield browser


@own
async def window(service: Service, token: str, browser: Any) -> AsyncIterator[Page]:
    """A page of a browser in which an admin has signed in."""
    async with open_window(browser, service.url) as page:
        await sign_in(page, token)
        yield page
