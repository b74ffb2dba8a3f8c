"""Reader of one provider's accepted pushes: stores them with their position, each once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from sqlalchemy import Connection

from tocsin.errors import Refused, TryLater
from tocsin.hookspecs import Intake, IntakePosition, QueuedPush
from tocsin.incidents.coverage import PUSH_STREAM, WHOLE_PUSH, StreamKey, reject_push
from tocsin.incidents.held_lease import hold_when_free
from tocsin.incidents.intake.losses import describe_skip, record_loss
from tocsin.incidents.intake.positions import (
    acquire_intake_lease,
    advance_intake_position,
    load_intake_position,
    load_last_accepted,
)
from tocsin.incidents.storage import StoreResult, store_batch
from tocsin.incidents.writer import IncidentWriter
from tocsin.loops import beat, raise_if_cancelled, run_forever
from tocsin.model import Received
from tocsin.store import DatabaseFault, Lease, LeaseLost, find_fault

BATCH = 500
"""The most pushes, and unless a single push has more, the most incidents in a transaction."""
IDLE_INTERVAL = timedelta(hours=1)
"""How often the position of a provider without pushes is stored. Up to there, the pushes that the
intake removes later were none to this provider.
"""
_TRIES = 3
_PAUSE = timedelta(seconds=1)
_SILENCE = timedelta(minutes=2)
_ABSENCE_PAUSE = timedelta(seconds=5)
"""How long a reader leaves its lease to other nodes, which may still reach the intake."""
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Part:
    """A push, and what it contains."""

    push: QueuedPush
    contents: Sequence[Received]

    @property
    def size(self) -> int:
        return sum(len(received.incidents) for received in self.contents)


class IntakeReader:
    """Stores the pushes to one provider that the intake has accepted."""

    def __init__(
        self,
        intake: Intake,
        writer: IncidentWriter,
        node: int,
        flush: Callable[[], Awaitable[None]],
    ) -> None:
        self._intake = intake
        self._writer = writer
        self._key = StreamKey(writer.name, PUSH_STREAM)
        self._node = node
        self._flush = flush
        self._clock, self._database = writer.clock, writer.database
        self._stored: IntakePosition | None = None
        """The position in the database."""
        self._read: IntakePosition | None = None
        """The position up to which the intake has nothing more."""
        self._stored_at = self._clock.now()
        self._is_away = False
        """Whether the intake did not respond when it was last read."""

    async def run(self) -> None:
        """Store pushes while this node holds the lease for them, until cancelled."""
        name = self._writer.name
        await run_forever(self._serve, self._clock, "intake", silence=_SILENCE, provider=name)

    async def _serve(self) -> None:
        """Store pushes until the intake does not respond.

        That is no failure of this loop: the node stores new pushes at once, and remains ready.
        """
        try:
            async with hold_when_free(self._acquire, self._database, self._clock) as lease:
                self._writer.lease = lease
                await self.load()
                while True:
                    await self.step()
                    self._note_response()
                    raise_if_cancelled()
                    beat()
        except TryLater as error:
            self._note_absence(error)
        await self._clock.sleep(_ABSENCE_PAUSE)

    def _note_absence(self, error: TryLater) -> None:
        if not self._is_away:
            name, reason = self._writer.name, str(error)
            _log.warning("intake cannot be read; its pushes wait", provider=name, reason=reason)
        self._is_away = True

    def _note_response(self) -> None:
        if self._is_away:
            _log.info("intake is read again", provider=self._writer.name)
        self._is_away = False

    async def _acquire(self) -> Lease | None:
        name, now = self._writer.name, self._clock.now()
        return await self._database.write(acquire_intake_lease, name, self._node, now)

    async def load(self) -> None:
        """Continue from the position in the database."""
        self._stored = await self._database.read(load_intake_position, self._writer.name)
        self._read = self._stored

    async def step(self) -> None:
        """Store the next pushes, or wait a few seconds for some."""
        page = await self._intake.fetch(self._writer.name, self._read, BATCH)
        if page.start != self._read:
            await self._skip_to(page.start)
        if page.pushes:
            parts = [await asyncio.to_thread(self._unpack, push) for push in page.pushes]
            for batch in _split(parts):
                await self._store(batch, page.start.stream)
        elif self._is_idle(page.end):
            await self._database.write(self._advance, page.end)
            self._note_stored(page.end)
        self._read = page.end
        if page.pushes:
            await self._intake.acknowledge(self._writer.name, page.end)

    def _is_idle(self, end: IntakePosition) -> bool:
        return end != self._stored and self._clock.now() - self._stored_at >= IDLE_INTERVAL

    async def _skip_to(self, start: IntakePosition) -> None:
        """Continue where the intake still has pushes, and record what it has lost."""
        await self._flush()
        reason = await self._database.write(self._record_skip, start)
        self._note_stored(start)
        if reason is not None:
            self._writer.meter.count_lost(1)
            _log.error("accepted pushes lost", provider=self._writer.name, reason=reason)

    def _record_skip(self, connection: Connection, start: IntakePosition) -> str | None:
        """Advance to where the intake has pushes; return what it has lost, None without a loss."""
        accepted = load_last_accepted(connection, self._writer.name)
        self._advance(connection, start)
        if self._read is None:
            return None
        reason = describe_skip(self._read, start, accepted)
        record_loss(connection, self._key, reason, self._clock.now())
        return reason

    def _advance(
        self, connection: Connection, after: IntakePosition, received_at: datetime | None = None
    ) -> None:
        name, now = self._writer.name, self._clock.now()
        advance_intake_position(connection, name, self._stored, after, now, received_at=received_at)

    def _note_stored(self, position: IntakePosition) -> None:
        self._stored, self._stored_at = position, self._clock.now()

    def _unpack(self, push: QueuedPush) -> _Part:
        """Parse a push; one that cannot be parsed becomes a record for the quarantine."""
        try:
            return _Part(push, self._writer.unpack(push.body, push.received_at))
        except Refused as error:
            return self._reject(push, str(error))

    def _reject(self, push: QueuedPush, reason: str) -> _Part:
        _log.warning("accepted push quarantined", provider=self._writer.name, reason=reason)
        location = f"{WHOLE_PUSH}, number {push.sequence} in the intake"
        return _Part(push, (reject_push(push.body, reason, push.received_at, location),))

    async def _store(self, batch: Sequence[_Part], stream: str) -> None:
        """Store pushes in one transaction; if that fails, each half by itself.

        A push that cannot be stored by itself is quarantined. Raises the error of a database that
        is not available.
        """
        try:
            await self._write(batch, stream)
        except Exception as error:
            if _is_unavailable(error):
                raise
            if len(batch) == 1:
                await self._store_or_reject(batch[0], stream, error)
                return
            half = len(batch) // 2
            await self._store(batch[:half], stream)
            await self._store(batch[half:], stream)

    async def _store_or_reject(self, part: _Part, stream: str, error: Exception) -> None:
        for _ in range(_TRIES - 1):
            await self._clock.sleep(_PAUSE)
            try:
                await self._write([part], stream)
            except Exception as again:
                if find_fault(again) is not None or isinstance(again, LeaseLost):
                    raise
                error = again
            else:
                return
        if find_fault(error) is not None:  # such as a timeout: the database may be slow
            raise error
        await self._write([self._reject(part.push, f"it could not be stored: {error!r}")], stream)

    async def _write(self, batch: Sequence[_Part], stream: str) -> None:
        last = batch[-1].push
        after = IntakePosition(stream, last.sequence)
        contents = [received for part in batch for received in part.contents]

        def store(connection: Connection, now: datetime, reserved: Sequence[int]) -> StoreResult:
            self._advance(connection, after, last.received_at)
            return store_batch(
                connection,
                self._key,
                contents,
                policy=self._writer.policy,
                now=now,
                reserved=reserved,
            )

        await self._writer.write([one for each in contents for one in each.incidents], store)
        self._note_stored(after)


def _split(parts: Sequence[_Part]) -> Iterator[Sequence[_Part]]:
    """Yield the parts in batches of about equal numbers of incidents."""
    batch: list[_Part] = []
    size = 0
    for part in parts:
        if batch and size + part.size > BATCH:
            yield batch
            batch, size = [], 0
        batch.append(part)
        size += part.size
    if batch:
        yield batch


def _is_unavailable(error: Exception) -> bool:
    """Return whether no smaller batch could be stored either."""
    fault = find_fault(error)
    return isinstance(error, LeaseLost) or fault not in {None, DatabaseFault.TIMED_OUT}
