"""Examination of the intake."""

from __future__ import annotations

from dataclasses import replace

from tocsin.cli.doctor.findings import Area
from tocsin.cli.plugin_health import load_health
from tocsin.registry import Configuration, PluginFactory, start_providers

_REMEDY = "see docs/operators/intake.md"


async def examine_intake(area: Area, configuration: Configuration, maker: PluginFactory) -> None:
    """Find faults that make the intake refuse or lose pushes; nothing without an intake."""
    if configuration.intake is None:
        return
    alone = replace(configuration, providers=(), absent=(), strict=False)
    live = await start_providers(alone, maker)
    try:
        for absent in live.absent:
            area.fail(f"not loaded: {absent.reason}", _REMEDY)
        if not live.absent:
            health = await load_health(live.intake)
            for problem in health.problems:
                area.fail(problem, _REMEDY)
            if not health.problems:
                area.note(health.detail)
    finally:
        await live.close()
