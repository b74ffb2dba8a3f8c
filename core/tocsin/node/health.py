"""Health of the node: whether its database accepts writes, and whether its loops work."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

from sqlalchemy import Connection

from tocsin.clock import Clock
from tocsin.loops import Heartbeats, run_forever
from tocsin.plugin_health import PluginHealth
from tocsin.store import Database, DatabaseFault, DatabaseProbe, record_heartbeat

HEARTBEAT_INTERVAL = timedelta(seconds=5)


class NodeHealth:
    """Probes the database, follows the loops, and stores the heartbeat of the node."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        number: int,
        name: str,
        *,
        roles: Sequence[str] = (),
        describe_keys: Callable[[], Mapping[str, object]] = dict,
    ) -> None:
        self.heartbeats = Heartbeats()
        self.plugins = PluginHealth()
        self._clock = clock
        self._number = number
        self.name = name
        self._roles = roles
        self._describe_keys = describe_keys
        self._probe = DatabaseProbe(database, self._record)

    async def check_database(self) -> DatabaseFault | None:
        """Return the fault that keeps the database from accepting writes, or None."""
        return await self._probe.check()

    @property
    def stalled(self) -> Sequence[str]:
        """Names of the loops that are stuck."""
        return self.heartbeats.find_stalled()

    @property
    def silent(self) -> Sequence[str]:
        """Names of the loops that hang."""
        return self.heartbeats.find_silent()

    async def run(self) -> None:
        """Store the heartbeat every few seconds until cancelled."""
        await run_forever(self._step, self._clock, "node heartbeat")

    async def _step(self) -> None:
        self.heartbeats.tick()
        await self.check_database()
        await self._clock.sleep(HEARTBEAT_INTERVAL)

    def _record(self, connection: Connection) -> None:
        now = self._clock.now()
        record_heartbeat(
            connection,
            self._number,
            self.name,
            self.stalled,
            now,
            roles=self._roles,
            encryption_keys=self._describe_keys(),
            degraded=self.plugins.degraded,
        )
