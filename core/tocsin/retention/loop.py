"""Retention loop: removes what is old, in small batches behind other writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import structlog
from sqlalchemy import Connection

from tocsin.audit import remove_entries
from tocsin.clock import Clock
from tocsin.delivery import remove_events
from tocsin.loops import beat, run_forever
from tocsin.registry import RetentionSettings
from tocsin.retention.growth import GrowthGauges, measure_growth
from tocsin.retention.incidents import remove_incidents
from tocsin.retention.partitions import PartitionKeeper, list_latest_removals
from tocsin.retention.records import remove_coverage, remove_documents, remove_edges
from tocsin.retention.sessions import remove_sessions
from tocsin.store import (
    CLOCK_TOLERANCE,
    Archive,
    Database,
    RemovalBatch,
    describe_offset,
    measure_offset,
    reclaim_space,
)

_HOUR = timedelta(hours=1)
_log = structlog.get_logger()

Remove = Callable[[Connection, Any, datetime, Archive | None], RemovalBatch]
"""Removes a batch of records from before a time, from a position on (None: the first)."""


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """How long one kind of record is kept."""

    kind: str
    keep: timedelta
    remove: Remove
    by_month: bool = False
    """Whether whole months are dropped first, on a database with partitions."""


class Retention:
    """Removes what is older than its rule says, and measures what is kept."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        rules: Sequence[RetentionRule],
        archive: Archive | None,
        gauges: GrowthGauges | None = None,
    ) -> None:
        self._database = database
        self._clock = clock
        self._rules = rules
        self._archive = archive
        self._gauges = gauges
        self._partitions = PartitionKeeper(database, clock)

    async def run(self) -> None:
        """Remove what is old now and once an hour, until cancelled."""
        await run_forever(self._step, self._clock, "retention", pause=_HOUR)

    async def _step(self) -> None:
        beat()  # a full archive is logged, and is no reason to take the node out of service
        await self._partitions.add_months()
        if await self._is_on_time():
            await self.remove_old()
        if self._gauges is not None:
            self._gauges.show(await self._database.read(measure_growth))

    async def _is_on_time(self) -> bool:
        """Return whether this node's clock is the database's; one ahead would remove too much."""
        offset = await self._database.read(measure_offset, self._clock)
        if offset is None or abs(offset) < CLOCK_TOLERANCE:
            return True
        _log.error("nothing is removed: the clock is wrong", offset=describe_offset(offset))
        return False

    async def remove_old(self) -> int:
        """Remove everything that is old, and return its number."""
        removed = 0
        for rule in self._rules:
            if count := await self._apply(rule):
                _log.info("old records removed", kind=rule.kind, count=count)
            removed += count
        while removed and await self._database.write_behind(reclaim_space):
            beat()
        return removed

    async def _apply(self, rule: RetentionRule) -> int:
        before, removed = self._clock.now() - rule.keep, 0
        if rule.by_month:
            await self._partitions.drop_months(before, self._archive)
        since = None
        while True:
            batch = await self._database.write_behind(rule.remove, since, before, self._archive)
            removed, since = removed + batch.removed, batch.go_on_from
            beat()
            if since is None:
                return removed


def build_retention(
    database: Database,
    clock: Clock,
    settings: RetentionSettings,
    audit_key: bytes,
    gauges: GrowthGauges,
) -> Retention:
    """Build the retention of a node; without any rule, it only measures."""
    removers: dict[str, Remove] = {
        "events": remove_events,
        "sessions": remove_sessions,
        "incidents": remove_incidents,
        "search": remove_documents,
        "graph": remove_edges,
        "coverage": remove_coverage,
        "audit": partial(remove_entries, audit_key),
    }
    rules = [
        RetentionRule(kind, keep, remove, by_month=kind == "events")
        for kind, remove in removers.items()
        if (keep := getattr(settings, kind)) is not None
    ]
    gauges.show_limits(list_latest_removals(settings, has_months=database.is_shared))
    archive = None if settings.archive is None else Archive(settings.archive)
    return Retention(database, clock, rules, archive, gauges)
