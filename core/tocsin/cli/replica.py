"""Examination of the read replica, for `tocsin check` and `tocsin doctor`."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from tocsin.settings import Settings
from tocsin.store import (
    Database,
    find_unmarked_nodes,
    open_replica,
    parse_urls,
    shows_probe,
    store_probe,
)

_POLL_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class ReplicaFinding:
    """Finding about the read replica."""

    found: str
    remedy: str | None = None
    """None if the replica can be used."""


async def examine_replica(settings: Settings, primary: Database) -> ReplicaFinding | None:
    """Write to the primary, and measure when the replica shows it; None without a read URL."""
    replica = open_replica(parse_urls(settings))
    if replica is None:
        return None
    most = settings.database_read_max_lag_seconds
    try:
        lag = await _measure_lag(primary, replica, most)
    except Exception as error:  # noqa: BLE001 - whatever is wrong with it, nodes read from the primary
        reason = str(getattr(error, "orig", None) or error) or "no response"
        return ReplicaFinding(
            f"the replica cannot be read: {reason}", "check the server and TOCSIN_DATABASE_READ_URL"
        )
    finally:
        await replica.close()
    if lag is None:
        return ReplicaFinding(
            f"the replica did not show a write on the primary within {most} s",
            "check that TOCSIN_DATABASE_READ_URL refers to a replica of this database, "
            "and check its replication",
        )
    if names := await primary.read(find_unmarked_nodes):
        return ReplicaFinding(
            "the replica is not used, because these nodes do not record when they write: "
            f"{', '.join(names)}",
            "upgrade all nodes, and set TOCSIN_DATABASE_READ_URL on each",
        )
    return ReplicaFinding(f"a test write reached the replica after {lag:.2f} s")


async def _measure_lag(primary: Database, replica: Database, most: float) -> float | None:
    """Return the seconds until the replica shows a write; None after `most` seconds."""
    mark = await primary.write(store_probe)
    begun = time.monotonic()
    async with asyncio.timeout(most + 1):
        while (waited := time.monotonic() - begun) < most:
            if await replica.read(shows_probe, mark):
                return waited
            await asyncio.sleep(_POLL_SECONDS)
    return None
