"""Health of a plugin object, for `tocsin check` and `tocsin doctor`."""

from __future__ import annotations

import asyncio

from tocsin.errors import PluginFailure
from tocsin.hookspecs import Channel, Enricher, Intake, Provider
from tocsin.model import Health
from tocsin.plugin_results import require_result

_TIMEOUT_SECONDS = 30


async def load_health(plugin: Provider | Channel | Enricher | Intake) -> Health:
    """Return the health of a plugin; a check that fails or hangs is a problem."""
    try:
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            health = await plugin.check()
    except PluginFailure as error:
        return Health(detail="", problems=(str(error),))
    except TimeoutError:
        return Health(detail="", problems=(f"no response within {_TIMEOUT_SECONDS} seconds",))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a plugin's bug must not affect others
        return Health(detail="", problems=(f"health check failed: {error!r}",))
    try:
        return require_result(health, Health, plugin.check)
    except TypeError as error:
        return Health(detail="", problems=(f"health check failed: {error}",))
