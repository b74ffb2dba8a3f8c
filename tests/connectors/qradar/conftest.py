"""A simulated console and a provider that reads it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from tests.connectors.qradar.simulator import SETTINGS, QRadarSimulator

from tocsin import Severity
from tocsin.testing import Case, ManualClock, Siem, open_provider
from tocsin_connectors.siem.qradar import QRadar

Open = Callable[..., AbstractAsyncContextManager[QRadar]]
Put = Callable[..., Case]


@pytest.fixture
async def console(clock: ManualClock) -> AsyncIterator[QRadarSimulator]:
    async with QRadarSimulator(Siem(clock)) as simulator:
        yield simulator


@pytest.fixture
def opened(console: QRadarSimulator, clock: ManualClock) -> Open:
    def opened(**settings: Any) -> AbstractAsyncContextManager[QRadar]:
        given = {"url": console.url, **SETTINGS, **settings}
        return open_provider(QRadar, clock=clock, **given)

    return opened


@pytest.fixture
def put(console: QRadarSimulator, clock: ManualClock) -> Put:
    numbers = count(1)

    def put(**differently: Any) -> Case:
        number, now = next(numbers), clock.now() - timedelta(minutes=5)
        case = {
            "id": str(number),
            "number": number,
            "title": "Many things at once",
            "severity": Severity.HIGH,
            "created_at": now,
            "changed_at": now,
        }
        return console.siem.put(Case(**case | differently))

    return put
