"""A simulated cloud and a provider that reads it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from tests.connectors.crowdstrike.simulator import CID, SETTINGS, FalconSimulator

from tocsin import Severity
from tocsin.testing import Case, ManualClock, Siem, open_provider
from tocsin_connectors.siem.crowdstrike import CrowdStrike

Open = Callable[..., AbstractAsyncContextManager[CrowdStrike]]
Put = Callable[..., Case]


@pytest.fixture
async def falcon(clock: ManualClock) -> AsyncIterator[FalconSimulator]:
    async with FalconSimulator(Siem(clock)) as simulator:
        yield simulator


@pytest.fixture
def opened(falcon: FalconSimulator, clock: ManualClock) -> Open:
    def opened(**settings: Any) -> AbstractAsyncContextManager[CrowdStrike]:
        given = {"url": falcon.url, **SETTINGS, **settings}
        return open_provider(CrowdStrike, clock=clock, **given)

    return opened


@pytest.fixture
def put(falcon: FalconSimulator, clock: ManualClock) -> Put:
    numbers = count(1)

    def put(**differently: Any) -> Case:
        number, now = next(numbers), clock.now() - timedelta(minutes=5)
        case = {
            "id": f"{CID}:ind:d:{number}",
            "number": number,
            "title": "A credential was dumped",
            "severity": Severity.HIGH,
            "created_at": now,
            "changed_at": now,
        }
        return falcon.siem.put(Case(**case | differently))

    return put
