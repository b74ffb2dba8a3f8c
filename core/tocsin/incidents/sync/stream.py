"""Stream reader: stores the pages of one stream."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import structlog
from sqlalchemy import Connection

from tocsin.clock import isoformat
from tocsin.errors import Broken
from tocsin.incidents.coverage import (
    StreamKey,
    StreamPosition,
    load_position,
    mark_first_read_done,
)
from tocsin.incidents.storage import IncidentPolicy, StoreResult, store_page
from tocsin.incidents.writer import IncidentWriter
from tocsin.model import Page
from tocsin.plugin_health import get_plugin_health
from tocsin.plugin_results import iterate_pages
from tocsin.tracing import span

MAX_PAGES = 200
"""How many pages of a stream are read before the other streams get their turn."""
MAX_STALLED_PAGES = 10
"""After how many pages without progress a read is considered endless."""
PROGRESS_EVERY = timedelta(seconds=15)
"""How often the progress of a first read is logged."""
_REJECTED_IN_A_ROW = 3
_DEFECT = "records"
_log = structlog.get_logger()


@dataclass(slots=True)
class _FirstRead:
    """Progress of the first read of a stream, which may take hours, since the node started."""

    key: StreamKey
    logged_at: datetime
    incidents: int = 0
    read_until: datetime | int | None = None

    def add(self, page: Page, result: StoreResult, now: datetime) -> None:
        """Add a stored page, and log the progress if that is due."""
        self.incidents += result.counts.new
        if page.covered:
            self.read_until = page.covered[-1].end
        if now - self.logged_at >= PROGRESS_EVERY:
            self.logged_at = now
            self.log("first read in progress")

    def log(self, event: str) -> None:
        end = self.read_until
        until = isoformat(end) if isinstance(end, datetime) else end
        facts = {"provider": self.key.provider, "stream": self.key.stream}
        _log.info(event, **facts, read_until=until, incidents=self.incidents)


@dataclass(slots=True)
class _Rejections:
    """Records that were rejected since the last accepted one, or since the node started."""

    provider: str
    in_a_row: int = 0
    has_accepted: bool = False

    def count(self, page: Page, rejected: int) -> None:
        """Count a stored page, and mark the provider as degraded while every record is rejected."""
        own = len(page.rejected) + page.further_rejected
        health, path = get_plugin_health(), f"providers.{self.provider}"
        if len(page.incidents) > rejected - own or page.records > rejected:
            self.in_a_row, self.has_accepted = 0, True
            if health.clear(path, _DEFECT):
                _log.info("records accepted again", provider=self.provider)
            return
        self.in_a_row += rejected
        if self.in_a_row >= (_REJECTED_IN_A_ROW if self.has_accepted else 1):
            several = f"the last {self.in_a_row} records were all quarantined"
            reason = several if self.in_a_row > 1 else "the only record so far was quarantined"
            if health.mark(path, _DEFECT, reason):
                _log.warning("every record quarantined", provider=self.provider, reason=reason)


class StreamReader:
    """Stores the pages of one provider's streams."""

    def __init__(self, writer: IncidentWriter) -> None:
        self._writer = writer
        self._provider = writer.provider
        self._first_reads: dict[str, _FirstRead] = {}
        self._rejections: dict[str, _Rejections] = defaultdict(lambda: _Rejections(writer.name))

    async def read(self, stream: str) -> bool:
        """Read a stream up to now, and return whether its end was reached."""
        writer, key = self._writer, StreamKey(self._writer.name, stream)
        position = await writer.database.read(load_position, key)
        quiet = self._provider.settings.quiet_first_fetch and not position.first_read_done
        policy = replace(writer.policy, quiet=quiet)
        if not position.first_read_done:
            self._first_reads.setdefault(stream, _FirstRead(key, writer.clock.now()))
        with span("provider.read", {"provider": key.provider, "stream": stream}):
            is_at_end = await self._read_pages(key, position, policy)
        if not is_at_end:
            return False
        if not position.first_read_done:
            await writer.database.write(mark_first_read_done, key, writer.clock.now())
            self._first_reads.pop(stream).log("first read complete")
        return True

    async def _read_pages(
        self, key: StreamKey, position: StreamPosition, policy: IncidentPolicy
    ) -> bool:
        value, stalled_pages, count = position.value, 0, 0
        asked = key.stream, value, self._writer.clock.now()
        async with aclosing(iterate_pages(self._provider.read, key.provider, *asked)) as pages:
            async for page in pages:
                await self._store(key, page, position.revision + count, policy)
                count += 1
                stalled_pages = stalled_pages + 1 if page.next_position == value else 0
                if stalled_pages >= MAX_STALLED_PAGES:
                    raise Broken(
                        f"stream {key.stream!r}: the position did not advance in "
                        f"{MAX_STALLED_PAGES} pages; report this to the plugin's author "
                        f"(position: {value!r:.200})"
                    )
                value = page.next_position
                if count >= MAX_PAGES:
                    return False
        return True

    async def _store(
        self, key: StreamKey, page: Page, revision: int, policy: IncidentPolicy
    ) -> None:
        def store(connection: Connection, now: datetime, reserved: Sequence[int]) -> StoreResult:
            return store_page(
                connection,
                key,
                page,
                revision=revision,
                policy=policy,
                now=now,
                reserved=reserved,
            )

        stored = await self._writer.write(page.incidents, store)
        self._writer.meter.count_lost(sum(1 for each in page.covered if each.lost is not None))
        _log_page(key, page)
        self._rejections[key.stream].count(page, stored.counts.rejected)
        if key.stream in self._first_reads:
            self._first_reads[key.stream].add(page, stored, self._writer.clock.now())


def _log_page(key: StreamKey, page: Page) -> None:
    facts = {"provider": key.provider, "stream": key.stream}
    if page.rejected:
        first = page.rejected[0]
        where = {"source": first.source, "location": first.location, "reason": first.reason}
        _log.warning("records quarantined", count=len(page.rejected), **facts, **where)
    for interval in page.covered:
        if interval.lost:
            _log.warning("interval lost", **facts, source=interval.source, reason=interval.lost)
        elif interval.passed_over:
            _log.info(
                "interval skipped", **facts, source=interval.source, reason=interval.passed_over
            )
