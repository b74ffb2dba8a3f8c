"""Storing what one provider brings, for as long as its lease is ours."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import Connection

from tocsin.clock import Clock
from tocsin.events import EVENTS, Bells
from tocsin.hookspecs import Capability, Provider
from tocsin.incidents.measuring import SyncMeter
from tocsin.incidents.storing.alerting import AlertPolicy
from tocsin.incidents.storing.intake import Stored
from tocsin.incidents.syncing.lease import Lease, confirm
from tocsin.knowledge import INCIDENTS
from tocsin.store import Database


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the sync of every provider stands on."""

    database: Database
    clock: Clock
    bells: Bells
    public_url: str
    node: int = 0
    jitter: Callable[[], float] = random.random
    """Returns from 0 to 1 by how much a pause is longer than it need be."""


class Writer:
    """Stores, tells who waits for events, and counts."""

    def __init__(self, provider: Provider, around: Surroundings, meter: SyncMeter) -> None:
        self.name = provider.tools.name
        self.provider = provider
        self.database = around.database
        self.clock = around.clock
        self.policy = policy_of(provider, around.public_url)
        self.meter = meter
        self.lease: Lease | None = None
        """None where nobody else can read the provider, which needs no proof then."""
        self._events = around.bells[EVENTS]
        self._incidents = around.bells[INCIDENTS]

    async def write(self, store: Callable[[Connection, datetime], Stored]) -> Stored:
        """Return what `store` stored, in one transaction.

        Raises Superseded where the lease is lost.
        """
        stored = await self.database.write(self._store, store)
        if stored.events:
            self._events.ring()
        if stored.counts.new or stored.counts.changed:
            self._incidents.ring()
        self.meter.count_stored(stored.counts)
        return stored

    def _store(
        self, connection: Connection, store: Callable[[Connection, datetime], Stored]
    ) -> Stored:
        if self.lease is not None:
            confirm(connection, self.lease)
        return store(connection, self.clock.now())


def policy_of(provider: Provider, public_url: str) -> AlertPolicy:
    """Return what follows from the incidents of a provider, as its settings have it."""
    settings = provider.settings
    policy = AlertPolicy(public_url, on_escalation=settings.alert_on_escalation)
    if Capability.REREAD not in provider.capabilities():
        return policy
    return replace(policy, reread_after=getattr(settings, "reread_after", ()))
