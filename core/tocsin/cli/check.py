"""`tocsin check`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

import structlog
import typer

from tocsin.clock import SystemClock
from tocsin.credentials import open_proven_vault
from tocsin.errors import OperatorError, PluginFailure
from tocsin.hookspecs import Channel, Provider
from tocsin.logs import configure_logs
from tocsin.model import Health
from tocsin.registry import Maker, load_configuration, start_plugins
from tocsin.settings import Settings, load_settings
from tocsin.store import check_schema, is_sqlite, open_database, parse_url, sqlite_file

_SECONDS = 30


def check() -> None:
    """Judge configuration and database, and ask providers and destinations how they are.

    Exit status 0: all is well. 1: something is not. 2: the configuration is wrong.
    """
    settings = load_settings()
    configure_logs(settings.log_format)
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    if not asyncio.run(_check(settings)):
        raise typer.Exit(1)


async def _check(settings: Settings) -> bool:
    configuration = await load_configuration(
        settings.plugins_file, templates_dir=settings.templates_dir
    )
    print(f"{settings.plugins_file}: the configuration is valid")
    well = [await _check_database(settings)]
    live = await start_plugins(configuration, Maker(SystemClock(), settings.public_url))
    try:
        plugins: Sequence[Provider | Channel] = [*live.providers.values(), *live.channels.values()]
        well += [await _ask(plugin) for plugin in plugins]
    finally:
        await live.close()
    for absent in live.absent:
        print(f"{absent.name}: left out: {absent.reason}", file=sys.stderr)
    return all(well) and not live.absent


async def _check_database(settings: Settings) -> bool:
    url = parse_url(settings.database)
    if is_sqlite(url) and not sqlite_file(url).exists():
        print(f"database: {sqlite_file(url)} is made at the first start")
        return True
    database = open_database(url)
    try:
        await check_schema(database)
        await open_proven_vault(settings, database)
    except OperatorError as error:
        print(f"database: {error}", file=sys.stderr)
        return False
    finally:
        await database.close()
    print("database: its schema is current, and the encryption key is its own")
    return True


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
