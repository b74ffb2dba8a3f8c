"""Taking what is pushed: judged by its provider, and stored before its sender is answered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

import structlog
from sqlalchemy import Connection

from tocsin.errors import CredentialsRefused, Refused
from tocsin.hookspecs import Capability, Provider, PushRequest
from tocsin.incidents.coverage import ReadCounts, StreamKey
from tocsin.incidents.metrics import SyncMeter
from tocsin.incidents.storage import StoreResult, store_received
from tocsin.incidents.writer import IncidentWriter, SyncContext
from tocsin.model import Received, Rejected
from tocsin.store import lock_exclusively

_log = structlog.get_logger()
STREAM = "push"
"""The stream in the ledger for everything that is pushed to a provider."""


class PushInbox:
    """Receives incidents for the providers that support push."""

    def __init__(
        self,
        providers: Iterable[Provider],
        context: SyncContext,
        meter: Callable[[str], SyncMeter] = lambda _provider: SyncMeter.none(),
    ) -> None:
        self._writers = {
            provider.tools.name: IncidentWriter(provider, context, meter(provider.tools.name))
            for provider in providers
            if Capability.PUSH in provider.capabilities()
        }

    def has(self, name: str) -> bool:
        """Return whether a provider of this name exists and supports push."""
        return name in self._writers

    async def take(self, name: str, request: PushRequest) -> ReadCounts:
        """Store the incidents of a request, and return the counts.

        Raises what the provider's `receive` raises. A request refused for any reason but its
        credentials is quarantined as it was received.
        """
        writer = self._writers[name]
        try:
            received = await writer.provider.receive(request)
        except CredentialsRefused:
            _log.warning("push refused: invalid credentials", provider=name)
            raise
        except Refused as error:
            whole = Rejected(
                source=STREAM,
                location="whole request",
                reason=str(error),
                content=request.body,
            )
            await self._store(writer, Received(rejected=(whole,)))
            _log_rejected(name, (whole,))
            raise
        stored = await self._store(writer, received)
        if received.rejected:
            _log_rejected(name, received.rejected)
        return stored.counts

    async def _store(self, writer: IncidentWriter, received: Received) -> StoreResult:
        key = StreamKey(writer.name, STREAM)

        def store(connection: Connection, now: datetime) -> StoreResult:
            # Two senders may push one incident at once; all other streams have a single reader
            lock_exclusively(connection, f"push to {writer.name}")
            return store_received(connection, key, received, policy=writer.policy, now=now)

        return await writer.write(store)


def _log_rejected(name: str, rejected: Sequence[Rejected]) -> None:
    first = rejected[0]
    facts = {"count": len(rejected), "location": first.location, "reason": first.reason}
    _log.warning("records quarantined", provider=name, **facts)
