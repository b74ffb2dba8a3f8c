"""Head of the database, kept outside of it to detect a database rollback."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

import structlog
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from tocsin import audit
from tocsin.clock import Clock
from tocsin.errors import OperatorError
from tocsin.loops import run_forever
from tocsin.store import (
    INCIDENT_CHANGE,
    INCIDENT_NUMBER,
    Database,
    DatabaseReplaced,
    Epoch,
    Head,
    HeadFile,
    Rollback,
    find_rollback,
    load_epochs,
    load_head,
    settle_heads,
)

INTERVAL = timedelta(seconds=1)
"""How often the head is stored, and therefore how far behind the head in the file can be."""
_LAST_CHECK_SECONDS = 2
_log = structlog.get_logger()


class HeadKeeper:
    """Stores the head of the database in the data directory, and compares the database with it."""

    def __init__(self, file: HeadFile, database: Database, clock: Clock) -> None:
        self._file = file
        self._database = database
        self._clock = clock
        self._history: list[Epoch] = []
        self._head: Head | None = None
        self._is_stored = True

    async def start(self) -> None:
        """Begin a new epoch if the database is behind the head in the file, and store its head.

        Raises OperatorError if the file cannot be read.
        """
        history = await self._database.read(load_epochs)
        known = [stored.head for stored in self._file.load(history)]
        for rollback in await self._database.write(_settle, known, self._clock.now()):
            _log.error(
                "database rolled back; starting a new epoch, so that no number is issued twice",
                reason=str(rollback),
                advice="see `tocsin prove --head`, and "
                "docs/operators/accounting.md#database-rollback",
            )
        await self.check()

    async def run(self, end: Callable[[str], None]) -> None:
        """Check until cancelled; call `end` with the reason once the database was replaced.

        The last head is stored at the end.
        """

        async def step() -> None:
            await self._clock.sleep(INTERVAL)
            try:
                await self.check()
            except DatabaseReplaced as error:
                end(str(error))

        try:
            await run_forever(step, self._clock, "database head")
        finally:
            with suppress(TimeoutError, SQLAlchemyError, OSError):
                async with asyncio.timeout(_LAST_CHECK_SECONDS):
                    await self.check()

    async def check(self) -> None:
        """Store the head if it moved; raises DatabaseReplaced if the database is behind it."""
        self._database.check_identity()
        head = await self._database.lookup(load_head)
        if self._head is not None:
            known = self._raise_to_floors(self._head)
            if head == self._head == known and self._is_stored:
                return
            rollback = await self._database.read(find_rollback, known)
            if rollback is not None:
                raise DatabaseReplaced(str(rollback))
        if self._head is None or head.epoch_id != self._head.epoch_id:
            self._history = await self._database.read(load_epochs)
        self._head = head
        known = self._raise_to_floors(head)
        self._database.floors[INCIDENT_NUMBER] = known.incident_number
        self._database.floors[INCIDENT_CHANGE] = known.incident_change
        await self._store(head)

    def _raise_to_floors(self, head: Head) -> Head:
        """Return the head with the highest numbers that are known to have been issued."""
        floors = self._database.floors
        return replace(
            head,
            incident_number=max(head.incident_number, floors.get(INCIDENT_NUMBER, 0)),
            incident_change=max(head.incident_change, floors.get(INCIDENT_CHANGE, 0)),
        )

    async def _store(self, head: Head) -> None:
        """Store the head; a failure is logged, and the next check tries again."""
        try:
            await asyncio.to_thread(self._file.save, head, self._history, self._clock.now())
        except (OSError, OperatorError) as error:
            if self._is_stored:
                advice = "without this file, Tocsin cannot detect a database rollback"
                path = str(self._file.path)
                _log.warning("head not stored", file=path, reason=str(error), advice=advice)
            self._is_stored = False
        else:
            self._is_stored = True


def _settle(connection: Connection, known: Iterable[Head], now: datetime) -> list[Rollback]:
    """Begin a new epoch for each head that the database is behind, with an audit entry."""
    rollbacks = settle_heads(connection, known, now)
    for rollback in rollbacks:
        head = load_head(connection)
        details = {"reason": str(rollback), "known": rollback.known.incident_number}
        target = f"epoch:{head.epoch}"
        audit.record_local(connection, now, "system", "epoch.begin", target=target, details=details)
    return rollbacks
