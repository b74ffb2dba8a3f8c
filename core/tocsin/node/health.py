"""Health of the node: whether its database accepts writes, and whether its loops work."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

from sqlalchemy import Connection

from tocsin.clock import Clock
from tocsin.loops import Heartbeats, run_forever
from tocsin.metrics import Metrics
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
        roles: Sequence[str],
        describe_keys: Callable[[], Mapping[str, object]],
        metrics: Metrics,
    ) -> None:
        self.heartbeats = Heartbeats()
        self.plugins = PluginHealth()
        self._clock = clock
        self._number = number
        self.name = name
        self._roles = roles
        self._describe_keys = describe_keys
        self._probe = DatabaseProbe(database, self._record)
        self.fault: DatabaseFault | None = None
        """The result of the last test write."""
        HealthGauges(metrics, self)

    async def check_database(self) -> DatabaseFault | None:
        """Return the fault that keeps the database from accepting writes, or None."""
        self.fault = await self._probe.check()
        return self.fault

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


class HealthGauges:
    """Gauges of database faults and stalled loops, which need no database."""

    def __init__(self, metrics: Metrics, health: NodeHealth) -> None:
        self._health = health
        self._fault = metrics.gauge(
            "tocsin_database_fault",
            "1 for the fault because of which the database did not accept the last test write",
            "fault",
        )
        self._stalled = metrics.gauge(
            "tocsin_loop_stalled",
            "1 for each background loop that is more than 30 seconds late",
            "loop",
        )
        metrics.read_by(self._read)

    async def _read(self) -> None:
        self._fault.clear()
        if self._health.fault is not None:
            self._fault.labels(self._health.fault.value).set(1)
        self._stalled.clear()
        for loop in self._health.stalled:
            self._stalled.labels(loop).set(1)
