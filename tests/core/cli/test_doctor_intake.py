"""What `tocsin doctor` finds of an intake."""

from __future__ import annotations

from dataclasses import replace

import pytest

from api_server import CONFIGURATION
from memory_intake import MemoryIntake
from tocsin import Health, Intake, TryLater
from tocsin.cli.doctor.findings import Area
from tocsin.cli.doctor.intake import examine_intake
from tocsin.clock import SystemClock
from tocsin.registry import ConfiguredPlugin, PluginFactory


class AwayIntake(MemoryIntake):
    async def check(self) -> Health:
        raise TryLater("no server is connected")


class UnsafeIntake(MemoryIntake):
    async def check(self) -> Health:
        return Health(detail="", problems=("the stream is in memory",))


class BrokenIntake(MemoryIntake):
    async def start(self) -> None:
        raise ValueError("odd")


@pytest.mark.parametrize(
    ("kind", "severity", "found"),
    [
        (MemoryIntake, "ok", "in memory"),
        (AwayIntake, "problem", "no server is connected"),
        (UnsafeIntake, "problem", "the stream is in memory"),
        (BrokenIntake, "problem", "not loaded: "),
    ],
)
async def test_the_health_of_the_intake_is_a_finding(kind, severity, found):
    settings = Intake.Settings(plugin="memory")
    intake = ConfiguredPlugin("intake", kind, settings, {"plugin": "memory"})
    area = Area("intake")
    await examine_intake(area, replace(CONFIGURATION, intake=intake), PluginFactory(SystemClock()))
    [finding] = area
    assert (finding.severity, found in finding.found) == (severity, True)
    assert bool(finding.remedy) == (severity == "problem")


async def test_nothing_is_found_without_an_intake():
    area = Area("intake")
    await examine_intake(area, CONFIGURATION, PluginFactory(SystemClock()))
    assert list(area) == []
