"""Reader of the statuses of a destination's objects."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import structlog

from tocsin.channels import ObjectChannel
from tocsin.clock import isoformat
from tocsin.delivery.sending.attempts import clean_link
from tocsin.delivery.statuses.repository import (
    PACE,
    LinkedStatus,
    StatusBatch,
    StatusSource,
    claim_statuses,
    has_due_statuses,
    postpone_reader,
    store_statuses,
)
from tocsin.delivery.statuses.resolutions import (
    ApplyResolution,
    has_due_resolutions,
    resolve_incidents,
)
from tocsin.errors import TryLater
from tocsin.hookspecs import Channel
from tocsin.loops import (
    PLUGIN_FAILURES,
    SILENCE,
    describe_plugin_failure,
    run_forever,
    was_cancelled,
)
from tocsin.model import RemoteStatus
from tocsin.plugin_results import require_kind, require_result
from tocsin.redaction import SHORTEST_IN_IDS, Redactor
from tocsin.store import Database, LeaseLost

_IDLE = timedelta(seconds=10)
_GRACE = timedelta(seconds=5)
_DELAYS = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 15, 60))
_LONGEST_DELAY = timedelta(hours=24)
_LATE = "the receiver did not respond in time"
_log = structlog.get_logger()


class StatusReader:
    """Reads the statuses of the objects of one destination, batch by batch."""

    def __init__(
        self,
        channel: ObjectChannel,
        source: StatusSource,
        database: Database,
        node: int,
        apply: ApplyResolution | None = None,
    ) -> None:
        """Create a reader; it calls `apply` for each decision that people make in the receiver."""
        self._name = channel.tools.name
        self._channel = channel
        self._database = database
        self._node = node
        self._clock = channel.tools.clock
        self._source = source
        self._apply = apply
        self._timeout: timedelta = channel.settings.timeout + _GRACE
        self._redactor = Redactor(channel.list_secrets(), SHORTEST_IN_IDS)

    async def run(self) -> None:
        """Read due statuses until canceled."""
        silence = self._timeout + _IDLE + SILENCE
        what = "status reader"
        await run_forever(self._step, self._clock, what, silence=silence, destination=self._name)

    async def _step(self) -> None:
        has_read = await self.read_next()
        await self.resolve()
        await self._clock.sleep(PACE if has_read else _IDLE)

    async def resolve(self) -> int:
        """Apply people's decisions to the incidents, and return the number of changes."""
        source, done = self._source, 0
        if self._apply is None or not source.resolutions:
            return done
        while await self._database.lookup(has_due_resolutions, source):
            now = self._clock.now()
            done += await self._database.write(resolve_incidents, source, self._apply, now)
        return done

    async def read_next(self) -> bool:
        """Read the next due batch; return whether there was one."""
        source, clock, write = self._source, self._clock, self._database.write
        if not await self._database.lookup(has_due_statuses, source, clock.now()):
            return False
        batch = await write(claim_statuses, source, self._node, clock.now())
        if batch is None:
            return False
        try:
            found = await self._read(batch)
        except PLUGIN_FAILURES as error:
            if was_cancelled():
                raise
            await self._fail(batch, error)
            return False
        try:
            await write(store_statuses, source, batch, found, clock.now())
        except LeaseLost:
            return False
        return True

    async def _read(self, batch: StatusBatch) -> Mapping[str, LinkedStatus]:
        wanted = list(dict.fromkeys(batch.objects.values()))
        read = self._channel.read_statuses
        async with asyncio.timeout(self._timeout.total_seconds()):
            # `require_kind` creates no instance of the class
            found = require_kind(await read(wanted), Mapping, read)  # type: ignore[type-abstract]
        return {name: self._link(name, found.get(name)) for name in wanted}

    def _link(self, remote_id: str, status: object) -> LinkedStatus:
        url = clean_link(self._channel.link(remote_id), self._redactor)
        if status is None:
            return LinkedStatus(None, url)
        found = require_result(status, RemoteStatus, self._channel.read_statuses)
        clean = self._redactor.clean
        resolution, parent = (text and clean(text) for text in (found.resolution, found.parent_id))
        status = clean(found.status)
        return LinkedStatus(
            replace(found, status=status, resolution=resolution, parent_id=parent), url
        )

    async def _fail(self, batch: StatusBatch, error: BaseException) -> None:
        reason, delays = self._redactor.clean(describe_plugin_failure(error, late=_LATE)), _DELAYS
        if isinstance(error, TryLater) and error.after is not None:
            after = min(error.after, _LONGEST_DELAY)
            delays = tuple(max(delay, after) for delay in delays)
        now = self._clock.now()
        again_at = await self._database.write(postpone_reader, batch.lease, reason, delays, now)
        facts = {"destination": self._name, "reason": reason, "again_at": isoformat(again_at)}
        _log.warning("statuses not read; retrying", **facts)


def make_status_reader(
    channel: Channel, database: Database, node: int, apply: ApplyResolution | None = None
) -> StatusReader | None:
    """Return a destination's reader, or None if its statuses are not read."""
    interval: timedelta | None = getattr(channel.settings, "status_interval", None)
    if interval is None or not isinstance(channel, ObjectChannel) or not channel.status_batch:
        return None
    source = StatusSource(
        destination=channel.tools.name,
        home=channel.tenant_key,
        interval=interval,
        most=channel.status_batch,
        resolutions=getattr(channel.settings, "resolutions", {}),
    )
    return StatusReader(channel, source, database, node, apply)
