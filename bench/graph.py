"""Graph reads among 1,000,000 incidents with 5,000,000 edges, compared with 10,000 incidents."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log
from statistics import quantiles
from typing import Any

from bench.databases import KINDS, NewUrl, new_urls, open_new
from bench.history import KINDS_OF_ENTITIES, entity_of, fill
from tocsin.knowledge.graph import count_graph, find_neighborhood, find_path
from tocsin.knowledge.history import find_incidents, find_sightings
from tocsin.model import Entity, Node
from tocsin.observables import Environment
from tocsin.store import Database

SMALL, LARGE = 10_000, 1_000_000
_SMALLER = (10_000, 50_000)
READS = 200
_HUBS = 3
Arguments = Sequence[Any]


@dataclass(frozen=True)
class _Read:
    name: str
    operation: Callable[..., Any]
    arguments: Callable[[random.Random, int], Arguments]
    options: Mapping[str, Any] = field(default_factory=dict)


def run(rounds: int) -> None:
    """Measure every kind of database, at sizes that take seconds."""
    _run(_SMALLER, rounds)


def run_large(rounds: int) -> None:
    """Measure every kind of database, at the sizes to compare."""
    _run((SMALL, LARGE), rounds)


def _run(sizes: tuple[int, int], rounds: int) -> None:
    for kind in KINDS:
        with new_urls(kind) as new_url:
            asyncio.run(_compare(kind, new_url, sizes, rounds))


async def _compare(kind: str, new_url: NewUrl, sizes: tuple[int, int], rounds: int) -> None:
    databases = []
    for size in sizes:
        database = await open_new(new_url)
        await fill(database, size)
        databases.append((database, size))
    small, large = (f"{size:,}" for size in sizes)
    print(
        f"\n| {kind}: ms, p50 and p99 | {small} incidents | {large} incidents | large / small |"
        "\n|---|---:|---:|---:|"
    )
    for read in _READS:
        times: list[list[float]] = [[], []]
        for number in range(rounds + 1):
            for (database, size), taken in zip(databases, times, strict=True):
                seconds = await _measure(database, size, read)
                if number:  # the first round is a warm-up
                    taken.extend(seconds)
        _report(read.name, *map(_p50_and_p99, times))
    for database, _ in databases:
        await database.close()


async def _measure(database: Database, size: int, read: _Read) -> list[float]:
    chance = random.Random(7)
    taken = []
    for _ in range(READS):
        arguments = read.arguments(chance, size)
        begin = time.perf_counter()
        await database.read(read.operation, *arguments, **read.options)
        taken.append(time.perf_counter() - begin)
    return taken


def _p50_and_p99(seconds: Sequence[float]) -> tuple[float, float]:
    cuts = quantiles(seconds, n=100)
    return cuts[49] * 1000, cuts[98] * 1000


def _report(name: str, small: tuple[float, float], large: tuple[float, float]) -> None:
    cells = [f"{p50:.2f}, {p99:.2f}" for p50, p99 in (small, large)]
    ratios = ", ".join(f"{big / little:.2f}" for big, little in zip(large, small, strict=True))
    print(f"| {name} | {' | '.join(cells)} | {ratios} |", flush=True)


def _entity(chance: random.Random, size: int) -> Entity:
    """Return an entity with few incidents: 1 to 100, whatever the size."""
    kind = chance.choice(KINDS_OF_ENTITIES)
    incidents = 100 ** chance.random()
    return Entity(kind, entity_of(kind, int(size / (incidents * log(size / 2)))))


def _hub(chance: random.Random, _size: int) -> Entity:
    """Return an entity with far more incidents than are shown."""
    kind = chance.choice(KINDS_OF_ENTITIES)
    return Entity(kind, entity_of(kind, chance.randrange(_HUBS)))


def _node(chance: random.Random, size: int) -> Arguments:
    return (Node.of(_entity(chance, size)),)


def _hub_node(chance: random.Random, size: int) -> Arguments:
    return (Node.of(_hub(chance, size)),)


def _two_nodes(chance: random.Random, size: int) -> Arguments:
    return (*_node(chance, size), *_node(chance, size))


def _entities(chance: random.Random, size: int) -> Iterable[Entity]:
    return [_entity(chance, size) for _ in range(20)]


_READS = (
    _Read("around an entity, depth 1", find_neighborhood, _node),
    _Read("around an entity, depth 2", find_neighborhood, _node, {"depth": 2}),
    _Read("around a hub, depth 1", find_neighborhood, _hub_node),
    _Read("around a hub, depth 2", find_neighborhood, _hub_node, {"depth": 2}),
    _Read("around a hub, depth 3", find_neighborhood, _hub_node, {"depth": 3}),
    _Read("path between two entities", find_path, _two_nodes),
    _Read(
        "sightings of 20 entities",
        find_sightings,
        lambda chance, size: (_entities(chance, size), Environment()),
    ),
    _Read(
        "50 latest incidents about a hub",
        find_incidents,
        lambda chance, size: ([_hub(chance, size)], {}),
    ),
    _Read("statistics", count_graph, lambda _chance, _size: ()),
)
