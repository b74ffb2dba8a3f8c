"""The CrowdSec provider against the simulator, with a manual clock."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing
from datetime import timedelta
from typing import Any, Self

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tocsin import Broken, Capability, EntityKind, Incident, Misconfigured, Severity
from tocsin.testing import Case, Fault, ManualClock, Siem, open_provider
from tocsin_connectors.siem.crowdsec import CrowdSec, tocsin_providers

from .simulator import LocalApiSimulator


class Feed:
    """A simulated server and its provider, read as the core does."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.siem = Siem(self.clock)
        self.simulator = LocalApiSimulator(self.siem)
        self.position: dict[str, Any] | None = None
        self.incidents: list[Incident] = []
        self._count = 0

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.simulator)
            opening = open_provider(
                CrowdSec, clock=self.clock, url=self.simulator.url, **self.simulator.machine
            )
            self.provider = await stack.enter_async_context(opening)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._stack.aclose()

    def put(self, count: int = 1) -> None:
        now = self.clock.now()
        for _ in range(count):
            self._count += 1
            number = self._count
            case = Case(
                id=str(number),
                number=number,
                title=f"detection {number}",
                severity=Severity.MEDIUM,
                created_at=now,
                changed_at=now,
            )
            self.siem.put(case)

    async def read(self) -> list[Incident]:
        until, found = self.clock.now(), []
        async with aclosing(self.provider.read("changed", self.position, until)) as pages:
            async for page in pages:
                self.position = orjson.loads(orjson.dumps(page.next_position))
                found += page.incidents
        self.incidents += found
        return found

    @property
    def limits(self) -> list[int]:
        asked = (request.query.get("limit") for request in self.simulator.requests)
        return [int(limit) for limit in asked if limit]


@pytest.fixture
async def feed() -> AsyncIterator[Feed]:
    async with Feed() as feed:
        yield feed


def test_plugin_hook_returns_the_provider():
    assert tocsin_providers() is CrowdSec
    assert CrowdSec.capabilities() == {
        Capability.REFRESH,
        Capability.BACKFILL,
        Capability.EVENTS,
    }
    assert CrowdSec.event_kinds == {EntityKind.IP, EntityKind.USER}


async def test_quiet_read_requests_few_alerts(feed):
    feed.put(50)
    feed.clock.advance(minutes=2)
    assert len(await feed.read()) == 50
    feed.clock.advance(hours=1)
    await feed.read()
    feed.simulator.requests.clear()
    feed.clock.advance(minutes=1)
    assert await feed.read() == []
    assert set(feed.limits) == {5}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(
    bursts=st.lists(
        st.tuples(st.sampled_from([0.3, 1, 2.5, 59, 700, 9000]), st.integers(0, 260)), max_size=5
    ),
    skew=st.sampled_from([-300, -2, 0, 2, 300, 86_400]),
    reads=st.integers(1, 3),
)
@pytest.mark.full
async def test_every_alert_arrives_once(bursts, skew, reads):
    async with Feed() as feed:
        feed.siem.skew = timedelta(seconds=skew)
        await feed.read()
        for index, (seconds, size) in enumerate(bursts):
            feed.clock.advance(seconds=seconds)
            feed.put(size)
            if index % reads == 0:
                await feed.read()
        feed.clock.advance(minutes=2)
        await feed.read()
        assert feed.simulator.spins == 0
    titles = [incident.title for incident in feed.incidents]
    assert len(titles) == len(set(titles)) == sum(size for _, size in bursts)


async def test_clock_jump_between_reads_loses_nothing(feed):
    await feed.read()
    for skew in (timedelta(hours=2), -timedelta(hours=2), timedelta(0)):
        feed.put(20)
        feed.siem.skew = skew
        feed.clock.advance(hours=3)
        await feed.read()
    assert len({incident.external_id for incident in feed.incidents}) == 60


@pytest.mark.parametrize("fault", [Fault.EMPTY, Fault.UNEXPECTED, Fault.LOGIN_PAGE])
async def test_invalid_response_is_not_an_empty_list(feed, fault):
    await feed.read()
    feed.put()
    feed.clock.advance(minutes=2)
    feed.simulator.fail(fault, where="alerts")
    with pytest.raises(Broken):
        await feed.read()
    assert len(await feed.read()) == 1


@pytest.mark.parametrize("fault", [Fault.EMPTY, Fault.UNEXPECTED, Fault.LOGIN_PAGE])
async def test_invalid_response_is_not_a_deleted_alert(feed, fault):
    feed.put()
    feed.clock.advance(minutes=2)
    (incident,) = await feed.read()
    feed.simulator.fail(fault, where="alerts")
    with pytest.raises(Broken):
        await feed.provider.incident(incident.external_id)
    assert await feed.provider.incident(incident.external_id) == incident


@pytest.mark.parametrize("status", [400, 404])
async def test_wrong_url_is_reported(feed, status):
    async def refuse(_: web.Request) -> web.Response:
        return web.Response(status=status)

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", refuse)
    async with TestServer(application) as server:
        settings = {"url": str(server.make_url("")), **feed.simulator.machine}
        async with open_provider(CrowdSec, clock=feed.clock, **settings) as astray:
            with pytest.raises(Misconfigured, match=rf"^url: .* returned {status}; .*without /v1$"):
                await astray.check()
            with pytest.raises(Misconfigured):  # rather than that the alert was deleted
                await astray.incident("1@2026-11-20T09:20:21Z")
