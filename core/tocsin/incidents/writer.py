"""Writer of one provider's incidents."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from tocsin.clock import Clock
from tocsin.errors import Refused
from tocsin.events import EVENTS, Notifiers
from tocsin.hookspecs import Capability, Provider
from tocsin.incidents.coverage import attach_push
from tocsin.incidents.metrics import SyncMeter
from tocsin.incidents.storage import IncidentPolicy, StoreResult, count_unknown
from tocsin.knowledge import INCIDENTS
from tocsin.loops import beat
from tocsin.model import Incident, Received
from tocsin.store import INCIDENT_NUMBER, Database, Lease
from tocsin.tracing import span

StoreOperation = Callable[[Connection, datetime, Sequence[int]], StoreResult]
"""Stores incidents with a connection, the time, and numbers that are reserved for new ones."""
_MAX_TRIES = 3


@dataclass(frozen=True, slots=True)
class SyncContext:
    """Shared dependencies of the sync of all providers."""

    database: Database
    clock: Clock
    notifiers: Notifiers
    public_url: str
    node: int = 0
    jitter: Callable[[], float] = random.random
    """Returns the share, from 0 to 1, of the random extension of a pause."""
    grows_pauses: bool = True
    """Whether the pause of a failing provider grows with each failure."""


class IncidentWriter:
    """Stores received incidents, notifies waiting tasks, and counts."""

    def __init__(self, provider: Provider, context: SyncContext, meter: SyncMeter) -> None:
        self.name = provider.tools.name
        self.provider = provider
        self.database = context.database
        self.clock = context.clock
        self.policy = build_incident_policy(provider, context.public_url)
        self.meter = meter
        self.lease: Lease | None = None
        """None where no other node can read the provider, so that there is nothing to confirm."""
        self._events = context.notifiers[EVENTS]
        self._incidents = context.notifiers[INCIDENTS]

    def unpack(self, body: bytes, received_at: datetime) -> tuple[Received, ...]:
        """Return the contents of a stored push; raises Refused, also if the plugin fails."""
        try:
            parts = tuple(self.provider.unpack(body, received_at))
            return tuple(attach_push(received, body, received_at) for received in parts)
        except Refused:
            raise
        except Exception as error:  # a bug of the plugin must stop only this push
            raise Refused(f"the provider failed: {error!r}") from error

    async def write(self, incidents: Sequence[Incident], store: StoreOperation) -> StoreResult:
        """Store `incidents` by running `store` in one transaction, and return its result.

        It is repeated where another transaction has stored one of them meanwhile. Raises
        `LeaseLost` where the lease is lost.
        """
        with span("incidents.store", {"provider": self.name}) as traced:
            stored = await self._write(store, await self._reserve_numbers(incidents))
            traced.set(asdict(stored.counts) | {"events": stored.events})
        beat()
        self.note_stored(stored)
        return stored

    def note_stored(self, stored: StoreResult) -> None:
        """Count what a committed transaction has stored, and wake those who wait for it."""
        if stored.events:
            self._events.notify()
        if stored.counts.new or stored.counts.changed:
            self._incidents.notify()
        self.meter.count_stored(stored.counts)

    async def _write(self, store: StoreOperation, reserved: Sequence[int]) -> StoreResult:
        for _ in range(_MAX_TRIES - 1):
            with suppress(IntegrityError):
                return await self.database.write(self._store, store, reserved)
        return await self.database.write(self._store, store, reserved)

    async def _reserve_numbers(self, incidents: Sequence[Incident]) -> Sequence[int]:
        """Return a number for each incident that is not stored; none where nobody else would wait.

        Numbers that are allotted in a transaction keep all others waiting until it is committed.
        """
        if not self.database.is_shared or not incidents:
            return ()
        unknown = await self.database.lookup(count_unknown, self.name, incidents)
        if not unknown:
            return ()
        return await self.database.reserve_numbers(INCIDENT_NUMBER, unknown)

    def _store(
        self, connection: Connection, store: StoreOperation, reserved: Sequence[int]
    ) -> StoreResult:
        if self.lease is not None:
            self.lease.confirm(connection)
        return store(connection, self.clock.now(), reserved)


def build_incident_policy(provider: Provider, public_url: str) -> IncidentPolicy:
    """Build the policy from the settings of a provider."""
    settings = provider.settings
    policy = IncidentPolicy(
        public_url,
        on_escalation=settings.alert_on_escalation,
        first_seen_closed=settings.alert_when_first_seen_closed,
        stores_records=settings.store_alert_records,
        marking=settings.marking,
    )
    if Capability.REFRESH not in provider.capabilities():
        return policy
    return replace(policy, refresh_after=getattr(settings, "refresh_after", ()))
