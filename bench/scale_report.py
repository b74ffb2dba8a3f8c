"""Report on several nodes with one PostgreSQL, and what it means for more cores."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from bench.postgres_usage import LockSamples, Usage, sum_shards

DESTINATIONS = 4


@dataclass(frozen=True)
class Load:
    """Sizes of one measurement."""

    pushed: int
    polled: int
    paced: int
    """Incidents that are pushed one by one, for the latency."""
    per_second: float

    @property
    def deliveries(self) -> int:
        """The number of deliveries of the incidents that come all at once."""
        return (self.pushed + self.polled) * DESTINATIONS


@dataclass(frozen=True)
class Measured:
    """What was measured with a number of nodes."""

    nodes: int
    load: Load
    pushed: float
    """Seconds until all pushed incidents were stored."""
    stored: float
    """Seconds until all incidents were stored."""
    routed: float
    settled: float
    node_cpu: float
    idle_cpu: float
    """CPU seconds of one node and its share of the server in an idle second."""
    server: Usage
    rows: float
    """Rows written for each delivery."""
    paced_cpu: float
    """CPU seconds of nodes and server for the paced incidents, without what they use idle."""
    delays: Sequence[float]
    """Milliseconds from event to first attempt: median, and 99 of 100."""
    samples: LockSamples

    @property
    def busy_cpu(self) -> float:
        """CPU seconds of nodes and server, without what they use idle."""
        return self.node_cpu + self.server.cpu - self.idle_cpu * self.nodes * self.server.seconds

    def per_thousand(self, value: float) -> float:
        """Return a value for 1,000 deliveries."""
        return value * 1_000 / self.load.deliveries


def report(results: Sequence[Measured]) -> None:
    """Print what was measured, and what follows from it."""
    load = results[0].load
    print(
        f"\n{load.pushed:,} pushed and {load.polled:,} polled incidents at once, {DESTINATIONS} "
        f"destinations, {load.deliveries:,} deliveries; load average "
        f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    )
    print(f"\n| PostgreSQL | {' | '.join(_count_nodes(result.nodes) for result in results)} |")
    print(f"|---|{'---:|' * len(results)}")
    first = results[0]

    def row(title: str, values: Iterable[str]) -> None:
        print(f"| {title} | {' | '.join(values)} |")

    row("pushed incidents/s", (f"{load.pushed / r.pushed:,.0f}" for r in results))
    row("stored incidents/s", (f"{(load.pushed + load.polled) / r.stored:,.0f}" for r in results))
    row("routed events/s", (f"{(load.pushed + load.polled) / r.routed:,.0f}" for r in results))
    row("deliveries/s, end to end", (f"{load.deliveries / r.settled:,.0f}" for r in results))
    for title, value in (
        ("node CPU s per 1,000 deliveries", lambda r: r.node_cpu),
        ("PostgreSQL CPU s per 1,000 deliveries", lambda r: r.server.cpu),
        ("both", lambda r: r.node_cpu + r.server.cpu),
        ("both, without idle CPU", lambda r: r.busy_cpu),
    ):
        base = first.per_thousand(value(first))
        row(
            title,
            (
                f"{r.per_thousand(value(r)):.2f} ({r.per_thousand(value(r)) / base:.2f}x)"
                for r in results
            ),
        )
    row("idle CPU, one node with its share of the server", (f"{r.idle_cpu:.1%}" for r in results))
    row(
        f"CPU s per 1,000 deliveries at {load.per_second:g}/s, without idle CPU",
        (f"{r.paced_cpu * 1_000 / (load.paced * DESTINATIONS):.2f}" for r in results),
    )
    row(f"event to first attempt at {load.per_second:g}/s, median, ms", _delays(results, 0))
    row("the same, 99 of 100", _delays(results, 1))
    row("WAL bytes per delivery", (f"{r.server.wal / load.deliveries:,.0f}" for r in results))
    row("rows written per delivery", (f"{r.rows:.1f}" for r in results))
    _report_waits(results, row)
    _report_held(results, row)
    _report_model(results)


def _count_nodes(nodes: int) -> str:
    return "1 node" if nodes == 1 else f"{nodes} nodes"


def _delays(results: Sequence[Measured], which: int) -> Iterable[str]:
    return (f"{result.delays[which]:,.0f}" for result in results)


def _report_waits(results: Sequence[Measured], row: Any) -> None:
    """Print the statements that wait for another node, in sessions on average."""
    found = {name for result in results for name in result.samples.waits}
    for name in sorted(found, key=lambda n: -max(r.samples.waits[n] for r in results)):
        row(
            f"waits for another node: `{name}`",
            (f"{r.samples.share(r.samples.waits[name]):.1%}" for r in results),
        )
    row("waits for the own node", (f"{r.samples.share(r.samples.own_waits):.1%}" for r in results))
    for kind in ("CPU", "IO", "LWLock", "Lock"):
        row(
            f"sessions: {kind}",
            (f"{r.samples.share(r.samples.activity[kind]):.2f}" for r in results),
        )


def _report_held(results: Sequence[Measured], row: Any) -> None:
    held = [sum_shards(result.samples.held.items()) for result in results]
    for name in sorted({name for found in held for name in found}):
        row(
            f"held: {name}",
            (
                f"{r.samples.share(found.get(name, 0)):.1%}"
                for r, found in zip(results, held, strict=True)
            ),
        )


def _report_model(results: Sequence[Measured]) -> None:
    """Print what more cores would give: computed, not measured."""
    last = results[-1]
    cpu = (last.node_cpu + last.server.cpu) / last.load.deliveries
    rate = last.load.deliveries / last.settled
    print(f"\nComputed from {_count_nodes(last.nodes)}, not measured:\n")
    print(f"- By CPU time, one core does {1 / cpu:,.0f} deliveries/s.")
    for name, samples in sorted(sum_shards(last.samples.held.items()).items()):
        share = last.samples.share(samples)
        if share > 0:
            print(f"- Lock `{name}` is held {share:.1%}: at most {rate / share:,.0f} deliveries/s.")
