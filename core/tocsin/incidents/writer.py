"""Writer of one provider's incidents."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import Connection

from tocsin.clock import Clock
from tocsin.events import EVENTS, Notifiers
from tocsin.hookspecs import Capability, Provider
from tocsin.incidents.metrics import SyncMeter
from tocsin.incidents.storage.store import AlertPolicy, StoreResult
from tocsin.incidents.sync.lease import ProviderLease, confirm_lease
from tocsin.knowledge import INCIDENTS
from tocsin.store import Database


@dataclass(frozen=True, slots=True)
class SyncContext:
    """What the sync of every provider stands on."""

    database: Database
    clock: Clock
    notifiers: Notifiers
    public_url: str
    node: int = 0
    jitter: Callable[[], float] = random.random
    """Returns from 0 to 1 by how much a pause is longer than it need be."""


class IncidentWriter:
    """Stores, tells who waits for events, and counts."""

    def __init__(self, provider: Provider, around: SyncContext, meter: SyncMeter) -> None:
        self.name = provider.tools.name
        self.provider = provider
        self.database = around.database
        self.clock = around.clock
        self.policy = build_alert_policy(provider, around.public_url)
        self.meter = meter
        self.lease: ProviderLease | None = None
        """None where nobody else can read the provider, which needs no proof then."""
        self._events = around.notifiers[EVENTS]
        self._incidents = around.notifiers[INCIDENTS]

    async def write(self, store: Callable[[Connection, datetime], StoreResult]) -> StoreResult:
        """Return what `store` stored, in one transaction.

        Raises Superseded where the lease is lost.
        """
        stored = await self.database.write(self._store, store)
        if stored.events:
            self._events.notify()
        if stored.counts.new or stored.counts.changed:
            self._incidents.notify()
        self.meter.count_stored(stored.counts)
        return stored

    def _store(
        self, connection: Connection, store: Callable[[Connection, datetime], StoreResult]
    ) -> StoreResult:
        if self.lease is not None:
            confirm_lease(connection, self.lease)
        return store(connection, self.clock.now())


def build_alert_policy(provider: Provider, public_url: str) -> AlertPolicy:
    """Return what follows from the incidents of a provider, as its settings have it."""
    settings = provider.settings
    policy = AlertPolicy(public_url, on_escalation=settings.alert_on_escalation)
    if Capability.REREAD not in provider.capabilities():
        return policy
    return replace(policy, reread_after=getattr(settings, "reread_after", ()))
