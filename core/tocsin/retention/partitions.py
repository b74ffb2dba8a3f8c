"""Maintenance of monthly partitions: months are added ahead, and dropped as a whole."""

from __future__ import annotations

from datetime import datetime, timedelta

import structlog
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from tocsin.clock import Clock, isoformat
from tocsin.delivery import remove_month, remove_strays
from tocsin.loops import beat
from tocsin.registry import RetentionSettings
from tocsin.store import (
    LOCK_MILLISECONDS,
    Archive,
    Database,
    Operation,
    P,
    add_month,
    analyze_partitions,
    count_others,
    find_missing_partitions,
    is_analyzed,
    limit_lock_waits,
    list_months,
    start_of_month,
)

MONTHS_AHEAD = 3
_LEAST_AHEAD = 1
"""Months ahead of this one that a healthy database has."""
_LOCKS_PER_MONTH = 14
"""Tables and indexes that a query of all months locks in each."""
_LOCK_SHARE = 4
"""The default settings have room for such queries in a quarter of the sessions at once."""
_ADD_REMEDY = (
    "start a node with the role `deliver`, which adds months, and see its log; see also "
    "docs/operators/postgresql.md#partitions"
)
_LONGEST_MONTH = timedelta(days=31)
_TRIES = 20
_PAUSE = timedelta(seconds=1)
_LOCK_NOT_AVAILABLE = "55P03"  # appendix A of PostgreSQL's manual
_log = structlog.get_logger()


def list_latest_removals(settings: RetentionSettings, *, has_months: bool) -> dict[str, timedelta]:
    """Return the ages at which records are removed, by kind, where it is limited.

    With partitions, events go with the month in which they occurred. An archive has them removed
    one by one.
    """
    limits = dict(settings.limits)
    if has_months and settings.archive is None and "events" in limits:
        limits["events"] += _LONGEST_MONTH
    return limits


class PartitionKeeper:
    """Adds and drops the monthly partitions of a PostgreSQL database; nothing on SQLite."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def add_months(self) -> None:
        """Add the partitions of this month and of those ahead, where they are missing."""
        if not self._database.is_shared:
            return
        now, is_analyzed_ = self._clock.now(), await self._database.read(is_analyzed)
        for ahead in range(MONTHS_AHEAD + 1):
            month = start_of_month(now, ahead)
            if await self._change(_add_month, month):
                is_analyzed_ = False
                _log.info("month added to the partitions", month=f"{month:%Y-%m}")
        if not is_analyzed_:
            await self._database.write_behind(analyze_partitions)
        if others := await self._database.read(count_others):
            _log.warning(
                "rows belong to months without partitions",
                rows=others,
                advice="see docs/operators/postgresql.md#partitions",
            )

    async def drop_months(self, before: datetime, archive: Archive | None) -> None:
        """Drop the months that ended before a time, but for those with rows that are needed."""
        for month in await self._database.read(list_months):
            if month.end > before:
                return
            while await self._database.write_behind(remove_strays, month, before, archive):
                beat()
            if await self._change(remove_month, month, before, archive):
                _log.info("old month removed", month=month.suffix)

    async def _change(self, change: Operation[P, bool], *args: P.args, **kwargs: P.kwargs) -> bool:
        """Make a change, and return whether it was made; tries again while others use the tables.

        Others wait behind each try, so it is short.
        """
        for _ in range(_TRIES):
            beat()
            try:
                return await self._database.write_behind(change, *args, **kwargs)
            except DBAPIError as error:
                if getattr(error.orig, "sqlstate", None) != _LOCK_NOT_AVAILABLE:
                    raise
            await self._clock.sleep(_PAUSE)
        _log.warning("partitions not changed yet: the tables are in use")
        return False


def _add_month(connection: Connection, month: datetime) -> bool:
    limit_lock_waits(connection, LOCK_MILLISECONDS)
    return add_month(connection, month)


def find_partition_problems(connection: Connection, now: datetime) -> list[tuple[str, str]]:
    """Return what is wrong with the partitions, each with its remedy; nothing on SQLite."""
    months = list_months(connection)
    if not months:
        return []
    problems = []
    if missing := find_missing_partitions(connection):
        problems.append((f"partitions are missing: {', '.join(missing)}", _ADD_REMEDY))
    if months[-1].end <= start_of_month(now, _LEAST_AHEAD):
        ends = f"the partitions end on {isoformat(months[-1].end)}"
        problems.append((ends, _ADD_REMEDY))
    if others := count_others(connection):
        problems.append(
            (f"at least {others} rows belong to months without partitions", _ADD_REMEDY)
        )
    locks = int(connection.scalars(text("SHOW max_locks_per_transaction")).one())
    if len(months) * _LOCKS_PER_MONTH > locks * _LOCK_SHARE:
        needed = len(months) * _LOCKS_PER_MONTH // _LOCK_SHARE
        found = f"{len(months)} months of partitions, and max_locks_per_transaction is {locks}"
        remedy = f"set max_locks_per_transaction to {needed} or more, and restart PostgreSQL"
        problems.append((found, remedy))
    return problems
