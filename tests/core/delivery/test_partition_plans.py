"""Statements of the hot paths look at the partitions of their rows, not at all months."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from sqlalchemy import URL, Connection, event, make_url

from tocsin.delivery import DeliveryQueue, load_delivery, load_event, replay_delivery
from tocsin.delivery.history.repository import load_last_response
from tocsin.delivery.queue.overview import load_overview
from tocsin.delivery.queue.queue import _claim, _extend, _release, _settle
from tocsin.delivery.queue.states import DELIVERED, AttemptResult, AttemptVerdict, DeliveryLease
from tocsin.events import emit_events, find_still_unrouted, load_unrouted, mark_routed
from tocsin.store import Database, add_month, list_months

from .conftest import alert

PARTITION = re.compile(r"\b(?:events|deliveries|attempts)_(?:before_)?(?:\d{4}_\d\d|other)\b")


@pytest.fixture
def database_url(postgres, migrated) -> Iterator[URL]:
    yield make_url(postgres.lend(migrated))
    postgres.take_back()


@pytest.fixture(params=[0, pytest.param(33, marks=pytest.mark.full)])
async def partitions(request, database) -> int:
    """The number of months that have partitions."""
    for _ in range(request.param):
        [*_, last] = await database.read(list_months)
        await database.write(add_month, last.end)
    return len(await database.read(list_months))


class Explained:
    """Runs operations, and keeps the plans of their statements."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def __call__(
        self, operation: Callable, *arguments, may_scan: bool = False, **named
    ) -> list[tuple[str, str]]:
        """Return the statements of an operation that stays done, each with its plan.

        Unless it `may_scan` a table, the planner avoids that.
        """

        def run(connection: Connection) -> list[tuple[str, str]]:
            plans, is_ours = [], True

            def explain(connection, _cursor, statement, parameters, *_rest) -> None:
                nonlocal is_ours
                if not is_ours or not re.match(r"\s*(SELECT|UPDATE|INSERT|DELETE)", statement):
                    return
                is_ours = False
                rows = connection.exec_driver_sql(f"EXPLAIN {statement}", parameters)
                plans.append((statement, "\n".join(row[0] for row in rows)))
                is_ours = True

            if not may_scan:
                connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
            event.listen(connection, "before_cursor_execute", explain)
            self.result = operation(connection, *arguments, **named)
            event.remove(connection, "before_cursor_execute", explain)
            return plans

        return await self._database.write(run)


@pytest.fixture
def explained(database) -> Explained:
    return Explained(database)


def count_partitions(plan: str) -> int:
    return len(set(PARTITION.findall(plan)))


async def test_statements_by_id_look_at_one_month(database, clock, partitions, explained):
    now = clock.now()
    stored = [alert(number) for number in range(3)]
    await database.write(emit_events, stored)
    queue = DeliveryQueue(database)
    plans = await explained(find_still_unrouted, {each.id for each in stored})
    plans += await explained(mark_routed, stored)
    await database.write(queue.offer, [(each, "soc") for each in stored], now)
    lease = DeliveryLease("lease_1", now + timedelta(seconds=90), 0, "")
    due, *claims = await explained(_claim, "soc", 10, now, lease=lease, in_order=False, early=False)
    claimed = explained.result
    assert len(claimed) == 3
    plans += claims
    plans += await explained(_extend, claimed, now)
    plans += await explained(_release, claimed[2:], now, begun=False)
    result = {"state": DELIVERED, "outcome": "delivered", "verdict": AttemptVerdict.HEALTHY}
    times = {"started_at": now, "ended_at": now, "due_at": now}
    ended = [AttemptResult(claimed=each, **result, **times) for each in claimed[:2]]
    plans += await explained(_settle, ended)
    for read in (load_delivery, load_last_response):
        plans += await explained(read, claimed[0].id)
    plans += await explained(replay_delivery, claimed[0].id, now)
    assert len(plans) >= 12
    for statement, plan in plans:
        assert "Seq Scan" not in plan, statement
        if "JOIN events" not in statement or "ANY" in statement:
            assert count_partitions(plan) <= 3, (statement, plan)
    _, plan = due
    assert plan.count("Index Scan using") == partitions + 1
    assert "Seq Scan" not in plan
    assert "Merge Append" in plan


async def test_unrouted_events_are_found_by_their_index_without_statistics(database, explained):
    """A new month has none until autovacuum has analyzed it."""
    stored = [alert(number) for number in range(5_000)]
    await database.write(emit_events, stored)
    await database.write(mark_routed, stored[:4_500])
    [(_, plan)] = await explained(load_unrouted, 50, may_scan=True)
    assert explained.result.events == stored[4_500:4_550]
    assert "Seq Scan on events_before" not in plan


async def test_an_event_of_a_delivery_is_looked_up_in_its_month(
    database, clock, partitions, explained
):
    """PostgreSQL knows the month only once it has read the delivery."""
    stored = alert()
    await database.write(emit_events, [stored])
    await database.write(DeliveryQueue(database).offer, [(stored, "soc")], clock.now())
    id_ = await database.read(lambda c: c.exec_driver_sql("SELECT id FROM deliveries").scalar_one())

    def analyze(connection: Connection) -> str:
        query = (
            "EXPLAIN (ANALYZE, COSTS OFF) SELECT e.id FROM events e JOIN deliveries d "
            "ON d.event_id = e.id WHERE d.id = $1"
        )
        return "\n".join(row[0] for row in connection.exec_driver_sql(query, (id_,)))

    plan = await database.read(analyze)
    assert plan.count("(never executed)") == partitions
    assert await database.read(load_event, id_) is not None


async def test_looking_for_work_uses_the_indexes_of_what_waits(
    database, clock, partitions, explained
):
    assert partitions >= 4
    plans = await explained(load_overview, clock.now())
    plans += await explained(load_unrouted, 10)
    for statement, plan in plans:
        assert "Seq Scan on deliveries" not in plan, statement
        assert "Seq Scan on events" not in plan, statement
