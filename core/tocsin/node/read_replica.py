"""Read replica of a node, with its metrics."""

from __future__ import annotations

from contextlib import AsyncExitStack
from datetime import timedelta
from math import nan

from tocsin.clock import Clock
from tocsin.metrics import Metrics
from tocsin.settings import Settings
from tocsin.store import Database, FallbackReason, ReadReplica, open_replica, parse_urls


def open_read_replica(
    settings: Settings,
    primary: Database,
    *,
    clock: Clock,
    number: int,
    metrics: Metrics,
    stack: AsyncExitStack,
) -> ReadReplica | None:
    """Open the replica, and close it with the stack; None without a read URL."""
    reads = metrics.counter(
        "tocsin_replica_reads",
        "Reads that may use the replica, by outcome: replica, or why the primary answered",
        "outcome",
    )
    lag = metrics.gauge(
        "tocsin_replica_lag_seconds",
        "How many seconds the read replica is behind the primary; NaN if unknown",
    )
    lag.set(nan)
    if (database := open_replica(parse_urls(settings))) is None:
        return None
    for outcome in ("replica", *FallbackReason):
        reads.labels(outcome)

    def count(reason: FallbackReason | None) -> None:
        reads.labels("replica" if reason is None else reason.value).inc()

    most = timedelta(seconds=settings.database_read_max_lag_seconds)
    replica = ReadReplica(database, primary, clock, number, max_lag=most, count=count)
    lag.set_function(lambda: nan if replica.lag is None else replica.lag)
    stack.push_async_callback(replica.close)
    return replica
