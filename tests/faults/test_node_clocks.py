"""Nodes whose clocks are not those of the database and of the other nodes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

import aiohttp
import pytest
import structlog
from aiohttp import web

from end_to_end.service import SECRET, until
from ports import free_port
from tocsin.accounting import Period, report_period
from tocsin.events import emit_events
from tocsin.identifiers import new_id
from tocsin.metrics import Metrics
from tocsin.model import Event, EventType
from tocsin.node import ServiceNode, apply_file, open_node
from tocsin.node.clocks import ClockWatch
from tocsin.registry import load_configuration
from tocsin.settings import Settings

from .conftest import HastyClock

pytestmark = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


class SkewedClock(HastyClock):
    """The machine's clock, as far ahead as it is told."""

    def __init__(self, seconds: float = 0) -> None:
        self.seconds = seconds

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=self.seconds)


@asynccontextmanager
async def running(tmp_path, url, clock: SkewedClock) -> AsyncIterator[ServiceNode]:
    settings = Settings(
        data_dir=tmp_path / "data",
        database_url=url.render_as_string(hide_password=False),
        plugins_file=tmp_path / "plugins.toml",
        encryption_key="A" * 43 + "=",
        port=free_port(),
    )
    async with open_node(settings, clock) as node:
        stop = asyncio.Event()
        task = asyncio.create_task(node.run(stop))
        try:
            yield node
        finally:
            stop.set()
            await task


async def emit(database, count: int) -> None:
    now = SkewedClock().now()
    happened = [
        Event(
            id=new_id("evt"),
            event_type=EventType.INCIDENT_ALERT,
            timestamp=now,
            data={"incident_number": number, "severity": "High", "provider": "edge"},
            subject=f"incident:{number}",
        )
        for number in range(count)
    ]
    await database.write(emit_events, happened)


@pytest.fixture
async def applied(tmp_path, database, receiver) -> None:
    """A webhook to the receiver is configured and applied."""
    (tmp_path / "secret").write_text(SECRET)
    path = tmp_path / "plugins.toml"
    path.write_text('enabled = ["webhook"]\n' + receiver.destination(retry_schedule=["100ms"] * 3))
    configuration = await load_configuration(path)
    await database.write(apply_file, configuration, "file", SkewedClock().now())


@pytest.mark.usefixtures("applied")
async def test_a_node_that_is_far_ahead_repeats_nothing_and_works_once_its_clock_is_right(
    tmp_path, database, migrated_url, receiver
):
    goes_on = asyncio.Event()

    async def answer(_arrival, _request):
        await goes_on.wait()
        return web.Response(status=204)

    receiver.answers["soc"] = answer
    right, wrong = SkewedClock(), SkewedClock(300)
    async with (
        running(tmp_path, migrated_url, right) as first,
        running(tmp_path, migrated_url, wrong) as second,
    ):
        await until(lambda: first.state.roles["deliver"] and second.state.suspension is not None)
        await emit(database, 30)
        await until(lambda: len(receiver.oracle.arrivals) == 8)
        await asyncio.sleep(0.3)  # a node that worked would have claimed them by now
        assert await readiness(second) == (503, False, True)
        goes_on.set()
        await until(lambda: len(receiver.oracle.accepted("soc")) == 30)
        assert receiver.oracle.repeats() == 0
        wrong.seconds = 0
        await until(lambda: second.state.roles["deliver"])
        async with asyncio.timeout(30):  # its loops begin one after the other
            while await readiness(second) != (200, True, False):  # noqa: ASYNC110 - asks a node
                await asyncio.sleep(0.05)
        right.seconds = -100  # this node stops, and the other one delivers
        await until(lambda: first.state.suspension is not None)
        await emit(database, 10)
        await until(lambda: len(receiver.oracle.accepted("soc")) == 40)
    assert receiver.oracle.repeats() == 0


async def readiness(node: ServiceNode) -> tuple[int, bool, bool]:
    """Return status, whether all roles run, and whether the node says that its clock is off."""
    url = f"http://127.0.0.1:{node.settings.port}/readyz"
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        answer = await response.json()
        return response.status, all(answer["roles"].values()), "clock" in str(answer["suspended"])


async def compare(database, number: int, seconds: float) -> ClockWatch:
    clock = SkewedClock(seconds)
    watch = ClockWatch(database, clock, number, Metrics(clock), name="soc-1:8080")
    await watch.compare()
    return watch


@pytest.mark.parametrize(
    ("seconds", "warned", "suspended"),
    [
        (1, [], False),
        (3, ["and the database"], False),
        (-59, ["and the database"], False),
        (-61, ["and the database"], True),
        (61, ["and the database"], True),
    ],
)
async def test_a_clock_is_warned_about_at_two_seconds_and_refused_at_sixty(
    database, seconds, warned, suspended
):
    with structlog.testing.capture_logs() as logs:
        watch = await compare(database, 1, seconds)
    differing = [line["clocks"] for line in logs if line["event"] == "clocks differ"]
    assert [text.partition(" ")[2] for text in differing] == warned
    assert (watch.suspension is not None) is suspended
    now = SkewedClock().now()
    proof = await database.read(report_period, Period(now - timedelta(days=1), now), now)
    assert [item["kind"] for item in proof["unaccounted"]] == ["clock"] * len(warned)


async def test_the_clocks_of_two_nodes_are_compared(database):
    with structlog.testing.capture_logs() as logs:
        await compare(database, 1, -1.5)
        await compare(database, 2, 1.5)
    [line] = [line for line in logs if line["event"] == "clocks differ"]
    one, _, other = line["clocks"].partition(" and ")
    assert one == other
