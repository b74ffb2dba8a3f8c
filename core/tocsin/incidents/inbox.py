"""Inbox for pushed incidents, which are stored before their sender gets a response."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog
from sqlalchemy import Row
from sqlalchemy.exc import SQLAlchemyError
from ulid import ULID

from tocsin.errors import CredentialsRefused, Refused, TryLater
from tocsin.hookspecs import Capability, Intake, IntakePush, NoIntake, Provider, PushRequest
from tocsin.incidents.coverage import ReadCounts, attach_push, reject_push
from tocsin.incidents.intake import AcceptedPushes, IntakeReader
from tocsin.incidents.metrics import SyncMeter
from tocsin.incidents.push_retries import MappedPush, map_push
from tocsin.incidents.push_writer import PushWriter
from tocsin.incidents.refused_pushes import PushRefusal, RefusedPushes
from tocsin.incidents.writer import IncidentWriter, SyncContext
from tocsin.loops import Loop
from tocsin.model import Rejected
from tocsin.stops import EmergencyStop, StopKind, load_stops

PUBLISH_SECONDS = 2
"""How long the intake may take to accept a push before it is stored instead."""
_log = structlog.get_logger()
STOPS_FRESH = timedelta(seconds=1)
STOPS_SECONDS = 1
"""How long a push waits for the stops, which a database that does not respond would delay."""
MAX_RETRY_DELAY = timedelta(minutes=1)
"""The longest delay that senders to a stopped provider are asked for: a person may end the stop."""
MAX_BODY_MIB = 16
"""The largest body for a provider without a setting of its own."""


@dataclass(frozen=True, slots=True)
class PushResult:
    """The result of a push."""

    counts: ReadCounts
    is_stored: bool
    """False for a push that the intake has accepted, of which only records and rejected ones are
    counted.
    """


class PushInbox:
    """Receives incidents for the providers that support push."""

    def __init__(
        self,
        providers: Iterable[Provider],
        context: SyncContext,
        meter: Callable[[str], SyncMeter] = lambda _provider: SyncMeter.none(),
        intake: Intake | None = None,
    ) -> None:
        self._context = context
        self._meter = meter
        self.intake = intake or NoIntake()
        self._is_refused = False
        self._stops: Mapping[str, EmergencyStop] = {}
        self._stops_loaded_at: datetime | None = None
        self._accepted = AcceptedPushes(context.database, context.clock, meter)
        self._writers: dict[str, PushWriter] = {}
        self.replace((), providers)
        self._refused = RefusedPushes(context.database, context.clock)

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
                if self._can_accept(provider):
                    writer.meter.count_accepted_push(0)
                    writer.meter.count_fallback_push(0)
                self._writers[name] = PushWriter(writer)

    def has(self, name: str) -> bool:
        """Return whether a provider of this name exists and supports push."""
        return name in self._writers

    async def find_retry_delay(self, name: str) -> timedelta | None:
        """Return after which delay a sender may try again if its provider is stopped, else None.

        Stops are loaded once a second for all pushes of this node.
        """
        now = self._context.clock.now()
        await self._load_stops(now)
        stop = self._stops.get(name)
        if stop is None or stop.is_over(now):
            return None
        return MAX_RETRY_DELAY if stop.until is None else min(MAX_RETRY_DELAY, stop.until - now)

    async def _load_stops(self, now: datetime) -> None:
        """Load the stops if they are not fresh; without the database, the known ones stay."""
        loaded_at = self._stops_loaded_at
        if loaded_at is not None and loaded_at <= now < loaded_at + STOPS_FRESH:
            return
        self._stops_loaded_at = now  # of the pushes at this moment, only this one waits
        with suppress(SQLAlchemyError, OSError):  # an intake accepts pushes without the database
            async with asyncio.timeout(STOPS_SECONDS):
                lookup = self._context.database.lookup
                self._stops = await lookup(load_stops, StopKind.PROVIDER, now)

    def uses_intake(self, name: str) -> bool:
        """Return whether pushes to a provider go to the intake."""
        return self._can_accept(self._writers[name].writer.provider)

    def get_body_limit(self, name: str) -> int:
        """Return the size of the largest body for a provider, in bytes."""
        settings = self._writers[name].writer.provider.settings
        return int(getattr(settings, "max_body_mib", MAX_BODY_MIB)) * 2**20

    def is_authentic(self, name: str, headers: Mapping[str, str]) -> bool | None:
        """Return whether the headers prove who the sender is, None if that depends on the body."""
        return self._writers[name].writer.provider.is_authentic(headers)

    def make_readers(self, providers: Iterable[Provider]) -> Mapping[str, Loop]:
        """Return the loops that store what the intake accepts for these providers, by name."""
        return {
            f"intake {name}": self._make_reader(provider).run
            for provider in providers
            if self._can_accept(provider) and (name := provider.tools.name)
        }

    def _make_reader(self, provider: Provider) -> IntakeReader:
        writer = IncidentWriter(provider, self._context, self._meter(provider.tools.name))
        node = self._context.node
        return IntakeReader(self.intake, writer, node, self._accepted.flush)

    def _can_accept(self, provider: Provider) -> bool:
        """Return whether the intake accepts pushes to this provider."""
        unpacks = type(provider).unpack is not Provider.unpack
        return unpacks and not isinstance(self.intake, NoIntake)

    async def take(self, name: str, request: PushRequest, key: str | None = None) -> PushResult:
        """Hand a request to the intake, or store it, and return what became of it.

        `key` is the sender's own name for the request. Raises what `store` raises, and
        `ConflictError` where the intake has accepted another request with this key.
        """
        writer = self._writers[name].writer
        fits = len(request.body) <= self.intake.max_bytes
        if fits and self._can_accept(writer.provider):
            counts = await self._accept(writer, request, key)
            if counts is not None:
                return PushResult(counts, is_stored=False)
        return PushResult(await self.store(name, request), is_stored=True)

    async def _accept(
        self, writer: IncidentWriter, request: PushRequest, key: str | None
    ) -> ReadCounts | None:
        """Return the counts of an accepted request, None if it is to be stored instead.

        Its credentials and its contents are checked first: what is accepted can be stored later.
        """
        counts = ReadCounts()
        try:
            async with aclosing(writer.provider.receive(request)) as batches:
                async for received in batches:
                    rejected = len(received.rejected) + received.further_rejected
                    counts += ReadCounts(received.records, 0, 0, rejected)
        except CredentialsRefused:
            raise
        except Refused:
            return None  # it is quarantined where it is stored
        now = self._context.clock.now()
        push = IntakePush(
            provider=writer.name, key=key or str(ULID()), received_at=now, body=request.body
        )
        last = self._accepted.last
        try:
            async with asyncio.timeout(PUBLISH_SECONDS):
                position = await self.intake.publish(push)
        except (TryLater, TimeoutError) as error:
            writer.meter.count_fallback_push()
            if not self._is_refused:
                reason = str(error) or "no response in time"
                _log.warning("intake does not accept pushes; storing them directly", reason=reason)
            self._is_refused = True
            return None
        if self._is_refused:
            _log.info("intake accepts pushes again")
            self._is_refused = False
        self._accepted.add(writer.name, position, now, None if key else last)
        writer.meter.count_accepted_push()
        return counts

    async def store(self, name: str, request: PushRequest) -> ReadCounts:
        """Store the incidents of a request, batch by batch, and return the counts.

        Raises what the provider's `receive` raises. A request refused for any reason but its
        credentials is quarantined as it was received; batches before the refusal stay stored.
        """
        writer, received_at = self._writers[name], self._context.clock.now()
        counts = ReadCounts()
        try:
            async with aclosing(writer.writer.provider.receive(request)) as batches:
                async for received in batches:
                    part = attach_push(received, request.body, received_at)
                    counts += await writer.store(part)
                    if received.rejected:
                        _log_rejected(name, received.rejected, received.further_rejected)
        except CredentialsRefused:
            raise
        except Refused as error:
            part = reject_push(request.body, str(error), received_at)
            await writer.store(part)
            _log_rejected(name, part.rejected)
            raise
        return counts

    async def map_again(self, record: Row[Any]) -> MappedPush:
        """Map a quarantined push with the present settings of its provider.

        Raises RetryRefusedError if that is impossible or fails.
        """
        pushed = self._writers.get(record.provider)
        return await map_push(None if pushed is None else pushed.writer, record)

    def refuse(self, name: str, refusal: PushRefusal) -> None:
        """Count a request that was refused, for the log, the metrics and the coverage ledger."""
        self._writers[name].writer.meter.count_refused_push(refusal.value)
        self._refused.add(name, refusal)

    def loops(self) -> list[Coroutine[Any, Any, None]]:
        """Return the loops that record refused and accepted requests until cancelled."""
        return [self._refused.run(), self._accepted.run()]

    async def flush(self) -> None:
        """Record the requests that are not recorded yet."""
        await self._refused.flush()
        await self._accepted.flush()


def _log_rejected(name: str, rejected: Sequence[Rejected], further: int = 0) -> None:
    first = rejected[0]
    facts = {
        "count": len(rejected) + further,
        "location": first.location,
        "reason": first.reason,
    }
    _log.warning("records quarantined", provider=name, **facts)
