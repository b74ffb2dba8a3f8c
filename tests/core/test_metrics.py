"""Prometheus metrics of a node."""

from __future__ import annotations

import asyncio
import sys

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tocsin.metrics import KEPT, Metrics


async def test_what_was_counted_is_exposed_in_the_text_format(clock):
    metrics = Metrics(clock)
    metrics.counter("rung_total", "Bells that rang", "bell").labels('"big"').inc(2)
    metrics.gauge("waiting", "Bells that wait").set(3)
    metrics.histogram("toll_seconds", "How long they tolled", (1, 5)).observe(2)
    exposed = (await metrics.expose()).decode()
    for line in (
        "# HELP rung_total Bells that rang",
        "# TYPE rung_total counter",
        r'rung_total{bell="\"big\""} 2.0',
        "waiting 3.0",
        'toll_seconds_bucket{le="1.0"} 0.0',
        'toll_seconds_bucket{le="5.0"} 1.0',
        "toll_seconds_sum 2.0",
    ):
        assert f"{line}\n" in exposed
    assert list(text_string_to_metric_families(exposed))


async def test_when_a_series_began_is_not_told(clock):
    metrics = Metrics(clock)
    metrics.counter("rung_total", "Bells that rang").inc()
    metrics.histogram("toll_seconds", "How long they tolled", (1, 5)).observe(2)
    assert b"_created" not in await metrics.expose()


async def test_two_nodes_of_one_process_count_apart(clock):
    one, other = Metrics(clock), Metrics(clock)
    for metrics, times in ((one, 1), (other, 5)):
        metrics.counter("rung_total", "Bells that rang").inc(times)
    assert b"rung_total 1.0" in await one.expose()
    assert b"rung_total 5.0" in await other.expose()


@pytest.fixture
def reading(clock):
    """Metrics with a gauge that says how often it was read."""
    metrics = Metrics(clock)
    gauge = metrics.gauge("readings", "How often this was read")

    async def read() -> None:
        await asyncio.sleep(0)
        gauge.inc()

    metrics.read_by(read)
    return metrics


async def test_however_many_ask_it_is_read_once_in_a_while(reading, clock):
    exposed = await asyncio.gather(*(reading.expose() for _ in range(20)))
    assert all(b"readings 1.0" in one for one in exposed)
    clock.advance(seconds=KEPT.total_seconds() - 0.001)
    assert b"readings 1.0" in await reading.expose()
    clock.advance(seconds=0.001)
    assert b"readings 2.0" in await reading.expose()


async def test_a_clock_that_is_set_back_keeps_nothing_old(reading, clock):
    await reading.expose()
    clock.advance(days=-1)
    assert b"readings 2.0" in await reading.expose()


@pytest.mark.skipif(sys.platform != "linux", reason="it is read from /proc")
async def test_the_process_is_measured_too(clock):
    exposed = await Metrics(clock).expose()
    for name in (b"process_resident_memory_bytes", b"process_cpu_seconds_total"):
        assert b"# TYPE " + name in exposed


async def test_readings_wait_for_the_database_together(clock):
    metrics, everyone = Metrics(clock), asyncio.Barrier(2)
    metrics.read_by(everyone.wait)
    metrics.read_by(everyone.wait)
    async with asyncio.timeout(10):
        await metrics.expose()
