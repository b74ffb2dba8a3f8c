"""Refresh of new incidents, whose alerts and entities may arrive late."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import structlog
from sqlalchemy import Connection
from sqlalchemy.exc import InterfaceError, OperationalError

from tocsin.errors import Misconfigured, TryLater
from tocsin.incidents.coverage import StreamKey
from tocsin.incidents.storage import (
    DueRefresh,
    StoreResult,
    complete_refresh,
    load_due_refreshes,
    postpone_refresh,
    store_received,
)
from tocsin.incidents.sync.pauses import compute_pause
from tocsin.incidents.writer import IncidentWriter
from tocsin.loops import was_cancelled
from tocsin.model import Incident, Received
from tocsin.plugin_results import require_kind
from tocsin.store import LeaseLost

REFRESH_STREAM = "refresh"
BATCH_SIZE = 50
LONGEST_ROUND = timedelta(seconds=10)
"""Limits of one batch of refreshes, so that the regular reads are not delayed."""
_SHORTEST = timedelta(seconds=5)
_SHORTEST_PAUSE = timedelta(minutes=1)
_LONGEST_PAUSE = timedelta(hours=1)
_MAX_DELAY = timedelta(days=1)
# Errors that are not caused by the requested incident
_OUTAGES = (TryLater, Misconfigured, LeaseLost, OSError, OperationalError, InterfaceError)
_log = structlog.get_logger()


class _Refreshed(NamedTuple):
    """A due refresh, and what the SIEM returned; None where the incident is gone."""

    due: DueRefresh
    incident: Incident | None


class IncidentRefresher:
    """Refreshes the incidents of one provider that are due."""

    def __init__(self, writer: IncidentWriter) -> None:
        self._writer = writer
        self._provider = writer.provider
        self._after = writer.policy.refresh_after
        self._failures = 0
        self._rests_until: datetime | None = None
        self.has_more = False
        """Whether the last batch left incidents due that can be refreshed now."""

    @property
    def interval(self) -> timedelta:
        """The interval at which due refreshes are looked up."""
        return max(_SHORTEST, self._after[0] / 4) if self._after else timedelta.max

    async def work(self) -> None:
        """Refresh one batch of due incidents; during an outage of the SIEM they remain due."""
        self.has_more = False
        self.has_more = await self._refresh_batch()

    async def _refresh_batch(self) -> bool:
        """Refresh one batch, and return whether more incidents can be refreshed now."""
        writer, now = self._writer, self._writer.clock.now()
        if not self._after or (self._rests_until is not None and now < self._rests_until):
            return False
        batch = await writer.database.read(load_due_refreshes, writer.name, BATCH_SIZE, now)
        has_more = len(batch) == BATCH_SIZE
        refreshed: list[_Refreshed] = []
        for due in batch:
            if writer.clock.now() - now >= LONGEST_ROUND:
                has_more = True
                break
            try:
                refreshed.append(_Refreshed(due, await self._read(due.external_id)))
            except Exception as error:
                if was_cancelled():
                    raise
                if not await self._continue_after(due, error):
                    has_more = False
                    break
            else:
                self._failures = 0
        is_stored = not refreshed or await self._store(refreshed)
        return has_more and is_stored

    async def _store(self, refreshed: Sequence[_Refreshed]) -> bool:
        """Store what was read in one transaction, or each by itself if that fails.

        Returns whether others may follow.
        """
        try:
            await self._write(refreshed)
        except Exception as error:
            if was_cancelled():
                raise
            if len(refreshed) == 1:
                return await self._continue_after(refreshed[0].due, error)
            for one in refreshed:
                if not await self._store([one]):
                    return False
        return True

    async def _continue_after(self, due: DueRefresh, error: Exception) -> bool:
        """Postpone a refresh that failed, and return whether the error concerns it alone."""
        await self._postpone(due, error)
        if not isinstance(error, _OUTAGES):
            return True
        self._rest(error)
        return False

    async def _read(self, external_id: str) -> Incident | None:
        method = self._provider.incident
        found = await method(external_id)
        return None if found is None else require_kind(found, Incident, method)

    def _rest(self, error: Exception) -> None:
        """Pause as long as a regular read would after this error."""
        self._failures += 1
        pause = compute_pause([error], self._failures, _SHORTEST_PAUSE)
        self._rests_until = self._writer.clock.now() + pause

    async def _postpone(self, due: DueRefresh, error: Exception) -> None:
        """Postpone a refresh that failed, by the time for which it has been due.

        After a day, skip this step.
        """
        writer, now = self._writer, self._writer.clock.now()
        facts = {"provider": writer.name, "external_id": due.external_id}
        _log.warning("incident not refreshed", **facts, reason=repr(error))
        age = now - due.created_at
        if age > _MAX_DELAY + self._after[-1]:
            await self._write([_Refreshed(due, None)])
        else:
            overdue = age - self._after[min(due.step, len(self._after) - 1)]
            due_at = now + min(max(_SHORTEST_PAUSE, overdue), _LONGEST_PAUSE)
            await writer.database.write(postpone_refresh, writer.name, due, due_at=due_at)

    async def _write(self, refreshed: Sequence[_Refreshed]) -> None:
        writer = self._writer
        received = Received(incidents=tuple(one.incident for one in refreshed if one.incident))

        def store(connection: Connection, now: datetime, reserved: Sequence[int]) -> StoreResult:
            for one in refreshed:
                complete_refresh(connection, writer.name, one.due, self._after)
            key = StreamKey(writer.name, REFRESH_STREAM)
            return store_received(
                connection, key, received, policy=writer.policy, now=now, reserved=reserved
            )

        await writer.write(received.incidents, store)
