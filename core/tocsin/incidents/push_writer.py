"""Storage of pushed incidents; simultaneous pushes from several senders share a transaction."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from tocsin.incidents.coverage import PUSH_STREAM, ReadCounts, StreamKey
from tocsin.incidents.storage import StoreResult, store_batch
from tocsin.incidents.writer import IncidentWriter
from tocsin.model import Received

MAX_INCIDENTS = 500
"""The maximum number of incidents in a transaction, unless a single part has more."""


@dataclass(frozen=True, slots=True)
class _Part:
    """What one sender has pushed."""

    received: Received
    counts: asyncio.Future[ReadCounts]


class PushWriter:
    """Stores what is pushed to one provider, in one transaction of this node at a time."""

    def __init__(self, writer: IncidentWriter) -> None:
        self.writer = writer
        self._waiting: deque[_Part] = deque()
        self._storing: asyncio.Task[None] | None = None

    async def store(self, received: Received) -> ReadCounts:
        """Store what one sender has pushed, together with waiting pushes, and return its counts."""
        part = _Part(received, asyncio.get_running_loop().create_future())
        self._waiting.append(part)
        if self._storing is None:
            self._storing = asyncio.create_task(self._store_waiting())
        return await part.counts

    async def _store_waiting(self) -> None:
        try:
            while self._waiting:
                await self._store_batch(self._take())
        finally:
            self._storing = None

    def _take(self) -> list[_Part]:
        """Return the oldest parts, up to the limit, and at least one."""
        batch = [self._waiting.popleft()]
        count = len(batch[0].received.incidents)
        while self._waiting:
            count += len(self._waiting[0].received.incidents)
            if count > MAX_INCIDENTS:
                break
            batch.append(self._waiting.popleft())
        return batch

    async def _store_batch(self, batch: Sequence[_Part]) -> None:
        """Store parts together or, if that fails, each by itself, and tell their senders."""
        try:
            stored = await self._write([part.received for part in batch])
        except Exception as error:  # noqa: BLE001 - handed to the sender
            if len(batch) > 1:
                await asyncio.gather(*(self._store_batch([part]) for part in batch))
            elif not batch[0].counts.done():
                batch[0].counts.set_exception(error)
        else:
            for part, counts in zip(batch, stored.parts, strict=True):
                if not part.counts.done():  # its sender may be gone
                    part.counts.set_result(counts)

    async def _write(self, batch: Sequence[Received]) -> StoreResult:
        writer, key = self.writer, StreamKey(self.writer.name, PUSH_STREAM)

        def store(connection: Connection, now: datetime, reserved: Sequence[int]) -> StoreResult:
            return store_batch(
                connection, key, batch, policy=writer.policy, now=now, reserved=reserved
            )

        return await writer.write([one for each in batch for one in each.incidents], store)
