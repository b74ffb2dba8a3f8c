"""A simulated instance and a provider that reads it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from tests.connectors.secops.simulator import SETTINGS, SecOpsSimulator

from tocsin import Severity
from tocsin.testing import Case, ManualClock, Siem, open_provider
from tocsin_connectors.siem.secops import SecOps

Open = Callable[..., AbstractAsyncContextManager[SecOps]]
Put = Callable[..., Case]


@pytest.fixture
async def instance(clock: ManualClock) -> AsyncIterator[SecOpsSimulator]:
    async with SecOpsSimulator(Siem(clock)) as simulator:
        yield simulator


@pytest.fixture
def opened(instance: SecOpsSimulator, clock: ManualClock) -> Open:
    def opened(**settings: Any) -> AbstractAsyncContextManager[SecOps]:
        own = {"url": instance.url, "sign_in_url": instance.url, "first_fetch": "2h"}
        return open_provider(SecOps, clock=clock, **own | SETTINGS | settings)

    return opened


@pytest.fixture
def put(instance: SecOpsSimulator, clock: ManualClock) -> Put:
    numbers = count(1)

    def put(**differently: Any) -> Case:
        number, now = next(numbers), clock.now() - timedelta(minutes=5)
        case = {
            "id": f"de_{number}",
            "number": number,
            "title": "Secrets were deleted",
            "severity": Severity.HIGH,
            "created_at": now,
            "changed_at": now,
        }
        return instance.siem.put(Case(**case | differently))

    return put
