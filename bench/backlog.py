"""Delivery queue with many waiting and finished deliveries: claims, latency, memory."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median, quantiles

from sqlalchemy import Connection, insert, select, text

from bench.databases import KINDS, NewUrl, new_urls, open_new
from bench.delivery import SECRET, Deliveries, channels
from bench.receiver import receive, receive_slowly
from bench.samples import fill
from bench.sizes import choose_size
from bench.subprocesses import child
from tocsin.delivery import DeliveryQueue
from tocsin.events import Notifier, emit_events
from tocsin.identifiers import new_id
from tocsin.model import Event, EventType
from tocsin.node.configuration import apply_file
from tocsin.store import Database
from tocsin.store.tables import attempts, deliveries, events

FINISHED = (1_000, choose_size(1_000_000))
WAITING = 1_000
CLAIM = 64
CLAIMS = 200
SECONDS = 10
BACKLOG = 10_000
_NOW = datetime(2026, 11, 21, tzinfo=UTC)
_CHUNK = 10_000


def run(rounds: int) -> None:
    """Measure every kind of database."""
    os.environ["BENCH_SECRET"] = SECRET
    for kind in KINDS:
        with new_urls(kind) as new_url:
            asyncio.run(_measure_claims(kind, new_url, rounds))
        with child(receive) as port, new_urls(kind) as new_url:
            asyncio.run(_measure_latency(kind, new_url, f"http://127.0.0.1:{port}"))
    with child(receive_slowly) as port, child(_waiting, port) as megabytes:
        print(f"\n{BACKLOG:,} waiting deliveries: at most {megabytes} MB resident")


async def _measure_claims(kind: str, new_url: NewUrl, rounds: int) -> None:
    databases = [await _filled(new_url, count) for count in FINISHED]
    times: list[list[float]] = [[] for _ in FINISHED]
    for _ in range(rounds):
        for database, taken in zip(databases, times, strict=True):
            taken.append(await _claim_time(DeliveryQueue(database)))
    for database in databases:
        await database.close()
    few, many = (median(taken) for taken in times)
    print(f"\n| A claim of {CLAIM} among finished deliveries, {kind} | ms | to the first |")
    print("|---|---:|---:|")
    for count, taken in zip(FINISHED, (few, many), strict=True):
        print(f"| {count:,} | {taken * 1000:.2f} | {taken / few:.2f} |", flush=True)


async def _claim_time(queue: DeliveryQueue) -> float:
    """Return the median time of a claim; each claim is released without an attempt."""
    times = []
    for _ in range(CLAIMS):
        begin = time.perf_counter()
        claims = await queue.claim("receiver", CLAIM, _NOW)
        times.append(time.perf_counter() - begin)
        assert len(claims) == CLAIM
        await queue.release(claims, _NOW)
    return median(times)


async def _filled(new_url: NewUrl, finished: int) -> Database:
    """Return a database with finished deliveries, and a fixed small number of waiting ones."""
    database = await open_new(new_url)
    for start in range(0, finished, _CHUNK):
        count = min(_CHUNK, finished - start)
        await database.write(_store, count, "delivered")
    await database.write(_store, WAITING, "pending")
    await database.write(lambda connection: connection.execute(text("ANALYZE")))
    return database


def _store(connection: Connection, count: int, state: str) -> None:
    made = [_event(number) for number in range(count)]
    emit_events(connection, made)
    common = {"destination": "receiver", "state": state, "attempts": 1, "schedule_start": 0}
    times = {
        "due_at": _NOW,
        "created_at": _NOW,
        "finished_at": _NOW if state == "delivered" else None,
    }
    rows = [
        {"id": new_id("dlv"), "event_id": event.id, "subject": event.subject, **common, **times}
        for event in made
    ]
    connection.execute(insert(deliveries), rows)
    connection.execute(events.update().where(events.c.routed.is_(False)).values(routed=True))


def _event(number: int, occurred_at: datetime | None = None) -> Event:
    data = {"incident_number": number, "title": "Suspicious sign-in", "severity": "High"}
    return Event(
        id=new_id("evt"),
        event_type=EventType.INCIDENT_ALERT,
        timestamp=occurred_at or datetime.now(UTC),
        data={**data, "status": "New", "provider": "bench", "url": "https://tocsin.example/1"},
        subject=f"incident:{number}",
    )


async def _measure_latency(kind: str, new_url: NewUrl, url: str) -> None:
    database = await open_new(new_url)
    async with channels(url) as (configuration, made):
        await database.write(apply_file, configuration, "bench", _NOW)
        node = Deliveries(database, configuration, made)
        await node.measure()
        rate = await node.measure() / 2
        for what, emit in (
            ("in groups", _emit_in_groups),
            ("each in a transaction of its own", _emit_each),
        ):
            begun = datetime.now(UTC)
            async with node.running() as notifier:
                await emit(database, notifier, rate)
                await node.until_settled()
            cuts = quantiles(await database.read(_delays, begun), n=100)
            print(
                f"\n{kind}: {rate:,.0f} events per second, half of the maximum rate, "
                f"stored {what}: from event to first attempt "
                f"{cuts[49] * 1000:.0f} ms (median), {cuts[98] * 1000:.0f} ms (99 of 100)",
                flush=True,
            )
    await database.close()


async def _emit_in_groups(database: Database, notifier: Notifier, rate: float) -> None:
    """Emit events at this rate, those that occur during a transaction in the next one.

    Pushes that arrive at the same time, and the incidents of a page, are stored like this.
    """
    begin, number = datetime.now(UTC), 0

    def occurs_at(number: int) -> datetime:
        return begin + timedelta(seconds=number / rate)

    while number < rate * SECONDS:
        await asyncio.sleep((occurs_at(number) - datetime.now(UTC)).total_seconds())
        now, due = datetime.now(UTC), list[Event]()
        while (moment := occurs_at(number)) <= now and number < rate * SECONDS:
            due.append(_event(number, moment))
            number += 1
        if due:
            await database.write(emit_events, due)
            notifier.notify()


async def _emit_each(database: Database, notifier: Notifier, rate: float) -> None:
    """Emit events at this rate, each in a transaction of its own, up to all connections at once."""

    async def happen(number: int) -> None:
        await database.write(emit_events, [_event(number)])
        notifier.notify()

    begin = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number in range(int(rate * SECONDS)):
            await asyncio.sleep(begin + number / rate - time.perf_counter())
            group.create_task(happen(number))


def _delays(connection: Connection, since: datetime) -> list[float]:
    query = (
        select(events.c.timestamp, attempts.c.started_at)
        .join(deliveries, deliveries.c.event_id == events.c.id)
        .join(attempts, attempts.c.delivery_id == deliveries.c.id)
        .where(attempts.c.number == 1, events.c.timestamp >= since)
    )
    return [(row.started_at - row.timestamp).total_seconds() for row in connection.execute(query)]


def _waiting(send: Callable[[int], None], port: int) -> None:
    """Send the memory, in megabytes, of a process that delivers a backlog to a slow receiver."""
    with new_urls("SQLite") as new_url:
        send(asyncio.run(_backlog(new_url, f"http://127.0.0.1:{port}")))


async def _backlog(new_url: NewUrl, url: str) -> int:
    database = await open_new(new_url)
    async with channels(url) as (configuration, made):
        await database.write(apply_file, configuration, "bench", _NOW)
        await fill(database, "backlog", BACKLOG, quiet=False)
        async with Deliveries(database, configuration, made).running():
            await asyncio.sleep(SECONDS)
    await database.close()
    return _most_megabytes()


def _most_megabytes() -> int:
    status = Path("/proc/self/status").read_text().splitlines()
    line = next(line for line in status if line.startswith("VmHWM"))
    return int(line.split()[1]) // 1024
