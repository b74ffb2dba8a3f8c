"""Destinations that fail or are slow take nothing from those that are well, and lose nothing."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from statistics import quantiles

import pytest
from aiohttp import web

from tocsin.clock import SystemClock

from .receiver import Receiver
from .rogue import receiving, say_for_ever
from .station import open_station

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
HEALTHY = [f"healthy-{number:02}" for number in range(20)]
AT_ONCE = timedelta(seconds=15)  # whoever waited for the slow one would wait for a minute


@pytest.fixture
async def station(tmp_path, database):
    async with open_station(tmp_path, database, SystemClock()) as station:
        yield station


class Neighbors:
    """Twenty receivers that are well, and what came to them."""

    def __init__(self, station, receiver: Receiver) -> None:
        self._station = station
        self._receiver = receiver
        self.oracle = receiver.oracle

    async def add(self, name: str, receiver: Receiver | None = None, **settings) -> None:
        """Begin to deliver to a destination, counted by the oracle."""
        receiver = receiver or self._receiver
        schedule = settings.setdefault("retry_schedule", ["500ms"] * 50)
        receiver.oracle = self.oracle
        receiver.destination(name, retry_schedule=schedule)
        url = f"http://127.0.0.1:{receiver.port}/hook/{name}"
        await self._station.add(name, url, **settings)

    async def emit(self, events: int, pause: float = 0.2) -> None:
        """Have events happen, two at a time."""
        self.happened: dict[str, datetime] = {}
        for _ in range(events // 2):
            now = self._station.clock.now()
            self.happened |= dict.fromkeys(await self._station.emit(2), now)
            await asyncio.sleep(pause)

    async def latency(self) -> timedelta:
        """Return the time within which 99 of 100 arrived at those that are well."""
        for name in HEALTHY:
            await self._station.until("delivered", destination=name, seconds=60)
        waits = [
            arrival.at - self.happened[arrival.event]
            for arrival in self.oracle.arrivals
            if arrival.destination in HEALTHY
        ]
        seconds = [wait.total_seconds() for wait in waits]
        assert len(seconds) == len(HEALTHY) * len(self.happened), "each arrived, and once"
        return timedelta(seconds=quantiles(seconds, n=100)[-1])


@pytest.fixture
async def neighbors(station, receiver):
    neighbors = Neighbors(station, receiver)
    for name in HEALTHY:
        await neighbors.add(name)
    return neighbors


@pytest.mark.parametrize(
    "events",
    [20, pytest.param(1_000, marks=[pytest.mark.full, pytest.mark.timeout(400)])],
)
async def test_the_dead_and_the_slow_delay_nobody_and_lose_nothing(
    station, neighbors, receiver, events
):
    recovered = asyncio.Event()

    async def answer_late(_arrival, _request):
        await recovered.wait()
        return web.Response(status=204)

    receiver.answers = {"slow": answer_late, "hanging": answer_late}
    dead = Receiver()
    pausing = {"pause_after": "1s", "pause_after_failures": 5, "probe_interval": "500ms"}
    await neighbors.add("dead", dead, **pausing)
    await neighbors.add("slow", timeout="60s")
    await neighbors.add("hanging", timeout="500ms", **pausing)

    await neighbors.emit(events)
    assert await neighbors.latency() < AT_ONCE
    await station.until_it_is("paused", "dead")
    await station.until_it_is("paused", "hanging")
    assert {row["state"] for row in await station.deliveries("slow")} == {"pending"}

    recovered.set()
    async with dead:
        for name in ("dead", "slow", "hanging"):
            await station.until("delivered", destination=name, seconds=60)
        for name in ("dead", "hanging"):
            await station.until_it_is("active", name)
    await neighbors.oracle.account(station.database)


@pytest.mark.parametrize("interim", [b"100 Continue\r\n\r\n", b"103 So\r\nLink: <x>\r\n\r\n"])
async def test_who_floods_us_with_interim_answers_delays_nobody(station, neighbors, interim):
    async with receiving(say_for_ever(b"", (b"HTTP/1.1 " + interim) * 100)) as rogue:
        await station.add("flood", rogue.url(), retry_schedule=["1s"] * 50)
        await neighbors.emit(10)
        assert await neighbors.latency() < AT_ONCE
