"""Inbox for pushed incidents: stored before their sender is answered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import NoReturn

import structlog

from tocsin.errors import CredentialsRefused, Refused
from tocsin.hookspecs import Capability, Provider, PushRequest
from tocsin.incidents.coverage import ReadCounts
from tocsin.incidents.metrics import SyncMeter
from tocsin.incidents.push_writer import PUSH_STREAM, PushWriter
from tocsin.incidents.refused_pushes import PushRefusal, RefusedPushes
from tocsin.incidents.writer import IncidentWriter, SyncContext
from tocsin.model import Received, Rejected

_log = structlog.get_logger()
MAX_BODY_MIB = 16
"""The largest body for a provider without a setting of its own."""


class PushInbox:
    """Receives incidents for the providers that support push."""

    def __init__(
        self,
        providers: Iterable[Provider],
        context: SyncContext,
        meter: Callable[[str], SyncMeter] = lambda _provider: SyncMeter.none(),
    ) -> None:
        self._context = context
        self._meter = meter
        self._writers: dict[str, PushWriter] = {}
        self.replace((), providers)
        self._refused = RefusedPushes(context.database, context.clock, PUSH_STREAM)

    def replace(self, gone: Iterable[str], providers: Iterable[Provider]) -> None:
        """Stop receiving for some providers, and receive for others."""
        for name in gone:
            self._writers.pop(name, None)
        for provider in providers:
            if Capability.PUSH in provider.capabilities():
                name = provider.tools.name
                writer = IncidentWriter(provider, self._context, self._meter(name))
                for refusal in PushRefusal:  # start at 0, or the first would show no increase
                    writer.meter.count_refused_push(refusal.value, 0)
                self._writers[name] = PushWriter(writer)

    def has(self, name: str) -> bool:
        """Return whether a provider of this name exists and supports push."""
        return name in self._writers

    def get_body_limit(self, name: str) -> int:
        """Return the size of the largest body for a provider, in bytes."""
        settings = self._writers[name].writer.provider.settings
        return int(getattr(settings, "max_body_mib", MAX_BODY_MIB)) * 2**20

    def is_authentic(self, name: str, headers: Mapping[str, str]) -> bool | None:
        """Return whether headers prove who sends them, None if that depends on the body."""
        return self._writers[name].writer.provider.is_authentic(headers)

    async def take(self, name: str, request: PushRequest) -> ReadCounts:
        """Store the incidents of a request, batch by batch, and return the counts.

        Raises what the provider's `receive` raises. A request refused for any reason but its
        credentials is quarantined as it was received; batches before the refusal stay stored.
        """
        writer = self._writers[name]
        counts = ReadCounts()
        try:
            async with aclosing(writer.writer.provider.receive(request)) as batches:
                async for received in batches:
                    counts += await writer.store(received)
                    if received.rejected:
                        _log_rejected(name, received.rejected, received.further_rejected)
        except CredentialsRefused:
            raise
        except Refused as error:
            whole = Rejected(
                source=PUSH_STREAM,
                location="whole request",
                reason=str(error),
                content=request.body,
            )
            await writer.store(Received(rejected=(whole,)))
            _log_rejected(name, (whole,))
            raise
        return counts

    def refuse(self, name: str, refusal: PushRefusal) -> None:
        """Count a request that was refused, for the log, the metrics and the coverage ledger."""
        self._writers[name].writer.meter.count_refused_push(refusal.value)
        self._refused.add(name, refusal)

    async def run(self) -> NoReturn:
        """Record refused requests in the coverage ledger until cancelled."""
        await self._refused.run()

    async def flush(self) -> None:
        """Record the refused requests that are not recorded yet."""
        await self._refused.flush()


def _log_rejected(name: str, rejected: Sequence[Rejected], further: int = 0) -> None:
    first = rejected[0]
    facts = {
        "count": len(rejected) + further,
        "location": first.location,
        "reason": first.reason,
    }
    _log.warning("records quarantined", provider=name, **facts)
