"""`tocsin check`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

import structlog
import typer

from tocsin.clock import SystemClock
from tocsin.errors import PluginFailure
from tocsin.hookspecs import Channel, Provider
from tocsin.logs import configure_logs
from tocsin.model import Health
from tocsin.registry import load_configuration, start_plugins
from tocsin.settings import Settings, load_settings

_SECONDS = 30


def check() -> None:
    """Judge the configuration and ask each provider and destination how it is; starts nothing.

    Exit status 0: all is well. 1: something is not. 2: the configuration is wrong.
    """
    settings = load_settings()
    configure_logs(settings.log_format)
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    if not asyncio.run(_check(settings)):
        raise typer.Exit(1)


async def _check(settings: Settings) -> bool:
    configuration = await load_configuration(settings.plugins_file)
    print(f"{settings.plugins_file}: the configuration is valid")
    live = await start_plugins(configuration, SystemClock())
    try:
        plugins: Sequence[Provider | Channel] = [*live.providers.values(), *live.channels.values()]
        well = [await _ask(plugin) for plugin in plugins]
    finally:
        await live.close()
    for absent in live.absent:
        print(f"{absent.name}: left out: {absent.reason}", file=sys.stderr)
    return all(well) and not live.absent


async def _ask(plugin: Provider | Channel) -> bool:
    section = "providers" if isinstance(plugin, Provider) else "destinations"
    health = await _health(plugin)
    for problem in health.problems:
        print(f"{section}.{plugin.tools.name}: {problem}", file=sys.stderr)
    if not health.problems:
        print(f"{section}.{plugin.tools.name}: {health.detail}")
    return not health.problems


async def _health(plugin: Provider | Channel) -> Health:
    try:
        async with asyncio.timeout(_SECONDS):
            return await plugin.check()
    except PluginFailure as error:
        return Health(detail="", problems=(str(error),))
    except TimeoutError:
        return Health(detail="", problems=(f"no answer within {_SECONDS} seconds",))
    except Exception as error:  # noqa: BLE001 - a plugin's bug costs only itself
        return Health(detail="", problems=(f"its check failed: {error!r}",))
