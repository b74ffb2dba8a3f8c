"""Stalls of the event loop and the plugin that is named for them."""

from __future__ import annotations

import asyncio
import time
from importlib.metadata import EntryPoint

import structlog

from tocsin import Health, Provider, Tools
from tocsin.clock import SystemClock
from tocsin.metrics import Metrics
from tocsin.node import stalls
from tocsin.node.stalls import StallReporter
from tocsin.plugin_health import PluginHealth
from tocsin.registry import InstalledPlugin, PluginInventory, PluginsFile

POINT = EntryPoint("acme", f"{__name__}", "tocsin.providers")
INVENTORY = PluginInventory(
    PluginsFile(enabled=("acme",)),
    [InstalledPlugin("acme", "tocsin.providers", "tocsin-acme", "1", POINT)],
)


class Acme(Provider):
    async def check(self):
        time.sleep(0.12)  # noqa: ASYNC251
        return Health(detail="")

    async def read(self, stream, position, until):
        yield


def make_provider(name):
    tools = Tools(name=name, http=None, clock=SystemClock(), log=structlog.get_logger())
    return Acme(Acme.Settings(plugin="acme"), tools)


async def observe(monkeypatch, times, work, inventory=INVENTORY):
    monkeypatch.setattr(stalls, "THRESHOLD", 0.05)
    monkeypatch.setattr(stalls, "LOGGED_FROM", 0.05)
    monkeypatch.setattr(stalls, "_INTERVAL", 0.01)
    health, metrics = PluginHealth(), Metrics(SystemClock())
    reporter = StallReporter(health, metrics, lambda: inventory)
    with structlog.testing.capture_logs() as logs, reporter.watch():
        began_at = time.monotonic()
        for _ in range(times):
            await asyncio.sleep(0.03)
            await work()
        await asyncio.sleep(0.03)
    return health, (await metrics.expose()).decode(), logs, health.describe_stalls(began_at)


async def test_a_plugin_that_blocks_is_named_and_degraded_after_repeats(monkeypatch):
    guilty, innocent = make_provider("p-block"), make_provider("p-wait")

    async def work():
        waiting = asyncio.create_task(asyncio.sleep(0.01, innocent))
        await guilty.check()
        await waiting

    health, metrics, logs, described = await observe(monkeypatch, 3, work)
    assert list(health.degraded) == ["providers.p-block"]
    line = Acme.check.__code__.co_firstlineno + 1
    assert f"{__file__}:{line} (Acme.check)" in health.degraded["providers.p-block"]
    held = [log for log in logs if "held the event loop for" in log["event"]]
    assert len(held) == 3
    assert all(log["event"].startswith("provider p-block held") for log in held)
    assert described.startswith("provider p-block held the event loop for 0.")
    label = '{path="providers.p-block",plugin="acme"}'
    assert f"tocsin_plugin_stalls_total{label} 3.0" in metrics
    assert 'tocsin_plugin_degraded{path="providers.p-block"} 1.0' in metrics


async def test_other_code_that_blocks_is_blamed_on_no_plugin(monkeypatch):
    async def work():
        waiting = asyncio.create_task(asyncio.sleep(0.05, make_provider("p-wait")))
        time.sleep(0.12)  # noqa: ASYNC251
        await waiting

    point = EntryPoint("acme", "tocsin_acme", "tocsin.providers")
    plugin = InstalledPlugin("acme", "tocsin.providers", "tocsin-acme", "1", point)
    inventory = PluginInventory(PluginsFile(enabled=("acme",)), [plugin])
    health, metrics, logs, _ = await observe(monkeypatch, 3, work, inventory)
    assert health.degraded == {}
    assert {log["event"][:28] for log in logs} == {"code that belongs to no plug"}
    assert 'tocsin_plugin_stalls_total{path="",plugin=""} 3.0' in metrics
