"""What is counted of delivery as it happens, and what is read of it when Prometheus asks."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest
import structlog
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import delete, insert, text, update
from sqlalchemy.dialects import sqlite

from tocsin import Misconfigured, Receipt, Refused, TryLater
from tocsin.delivery.destinations.repository import DestinationState, StopReason
from tocsin.delivery.health.breaker import HealthStatus
from tocsin.delivery.metrics import gauges
from tocsin.delivery.metrics.meters import OUTCOMES, DeliveryMetrics
from tocsin.delivery.queue.queue import DeliveryQueue
from tocsin.delivery.queue.states import queue_topic
from tocsin.delivery.rendering import Renderer
from tocsin.delivery.routing.router import Router
from tocsin.delivery.sending.worker import Worker
from tocsin.events import Notifiers
from tocsin.identifiers import new_id
from tocsin.metrics import KEPT, Metrics
from tocsin.node import open_node
from tocsin.settings import Settings
from tocsin.store.sqlite import make_engine
from tocsin.store.tables import deliveries, destinations, metadata, sequences, suppressions
from workers import flush

from .conftest import add, alert, destination

DEPTH = "tocsin_delivery_queue_depth"
OLDEST = "tocsin_delivery_queue_oldest_age_seconds"
DEAD = "tocsin_delivery_dead"
BREAKER = "tocsin_delivery_breaker_state"
STATE = "tocsin_delivery_destination_state"
UP = "tocsin_database_up"
ATTEMPTS = "tocsin_delivery_attempts_total"


class Exposed(dict):
    """The value of each series, by its name and the values of its labels."""

    def __init__(self, content: bytes) -> None:
        for family in text_string_to_metric_families(content.decode()):
            for sample in family.samples:
                labels = sorted(sample.labels.items())
                self[(sample.name, *(value for _, value in labels))] = sample.value


class Desk:
    """A router and a worker that are driven by hand, and measured."""

    def __init__(self, channel, database, clock) -> None:
        self.channel = channel
        self.database = database
        self.clock = clock
        self.queue = DeliveryQueue(database)
        self._metrics = Metrics(clock)
        self.metrics = DeliveryMetrics(self._metrics, database, clock)
        notifiers = Notifiers()
        self.router = Router(self.queue, database, clock, notifiers, self.metrics.routed)
        self.worker = Worker(
            destination(),
            channel,
            renderer=Renderer([]),
            queue=self.queue,
            database=database,
            notifier=notifiers[queue_topic("soc")],
            vacancy_notifier=notifiers["vacancies"],
            meter=self.metrics.meters.of("soc"),
        )

    async def work(self) -> None:
        while await self.router.route_waiting():
            pass
        while await self.worker.claim():
            await flush(self.worker)

    async def expose(self) -> Exposed:
        self.clock.advance(seconds=KEPT.total_seconds())
        return Exposed(await self._metrics.expose())


@pytest.fixture
async def desk(make_channel, database, clock) -> Desk:
    await add(database, destination())
    return Desk(make_channel(), database, clock)


@pytest.fixture
def wait(database, store, clock):
    """Have a new delivery rest in some state."""

    async def wait(name: str = "soc", number: int = 1, **members) -> None:
        event = alert(number)
        await store(event)
        row = {
            "id": new_id("dlv"),
            "event_id": event.id,
            "destination": name,
            "subject": event.subject,
            "state": "pending",
            "attempts": 0,
            "schedule_start": 0,
            "due_at": clock.now(),
            "created_at": clock.now(),
        }
        statement = insert(deliveries).values(row | members)
        await database.write(lambda connection: connection.execute(statement) and None)

    return wait


ERRORS = {
    "delivered": None,
    "later": TryLater("busy"),
    "failed": ValueError("a bug"),
    "refused": Refused("no"),
    "misconfigured": Misconfigured("no such folder"),
}


@pytest.mark.parametrize("outcome", OUTCOMES)
async def test_an_attempt_is_counted_by_how_it_ended(desk, store, outcome):
    def answer(_):
        if ERRORS[outcome] is not None:
            raise ERRORS[outcome]
        return Receipt(status=204)

    desk.channel.answer = answer
    await store(alert())
    await desk.work()
    exposed = await desk.expose()
    counted = {word: exposed[ATTEMPTS, "soc", word] for word in OUTCOMES}
    assert counted == dict.fromkeys(OUTCOMES, 0) | {outcome: 1}
    assert exposed["tocsin_events_routed_total",] == 1


async def test_closed_objects_are_counted(desk, store):
    assert (await desk.expose())["tocsin_objects_closed_total", "soc"] == 0
    desk.channel.answer = lambda _: Receipt(status=200, closed=("SEC-1", "SEC-2"))
    await store(alert())
    await desk.work()
    assert (await desk.expose())["tocsin_objects_closed_total", "soc"] == 2


async def test_durations_are_measured_of_all_and_latencies_of_what_arrived(desk, store, clock):
    def answer(delivery):
        clock.advance(seconds=2)
        if delivery.attempt == 1:
            raise TryLater("busy")
        return Receipt(status=204)

    desk.channel.answer = answer
    await store(alert())
    await desk.work()
    clock.advance(seconds=6)
    await desk.work()
    exposed = await desk.expose()
    duration = "tocsin_delivery_attempt_duration_seconds"
    latency = "tocsin_delivery_latency_seconds"
    assert exposed[f"{duration}_count", "soc"] == 2
    assert exposed[f"{duration}_sum", "soc"] == 4
    assert exposed[f"{duration}_bucket", "soc", "1.0"] == 0
    assert exposed[f"{duration}_bucket", "soc", "2.5"] == 2
    assert exposed[f"{latency}_count", "soc"] == 1
    assert exposed[f"{latency}_sum", "soc"] == 10


async def test_a_clock_that_is_set_back_takes_nothing_off(desk, store, clock):
    def answer(_):
        clock.advance(hours=-1)
        return Receipt(status=204)

    desk.channel.answer = answer
    await store(alert())
    await desk.work()
    exposed = await desk.expose()
    assert exposed["tocsin_delivery_attempt_duration_seconds_sum", "soc"] == 0
    assert exposed["tocsin_delivery_latency_seconds_sum", "soc"] == 0


async def test_an_attempt_that_came_too_late_is_a_lost_lease(desk, store, database, clock):
    async def deliver(_):
        clock.advance(seconds=91)
        assert len(await DeliveryQueue(database, 9).claim("soc", 1, clock.now())) == 1
        return Receipt(status=204)

    desk.channel.deliver = deliver
    assert (await desk.expose())["tocsin_delivery_leases_lost_total", "soc"] == 0
    await store(alert())
    await desk.work()
    exposed = await desk.expose()
    assert exposed["tocsin_delivery_leases_lost_total", "soc"] == 1
    assert exposed[ATTEMPTS, "soc", "delivered"] == 1


async def test_what_waits_is_counted_by_state_and_so_is_what_is_dead(desk, wait):
    for number, state in enumerate(("pending", "pending", "on_hold", "dead", "delivered")):
        await wait(number=number, state=state)
    exposed = await desk.expose()
    assert exposed[DEPTH, "soc", "pending"] == 2
    assert exposed[DEPTH, "soc", "on_hold"] == 1
    assert exposed[DEAD, "soc"] == 1


@pytest.mark.parametrize("state", [DestinationState.PAUSED, DestinationState.DISABLED])
async def test_what_waits_for_its_destination_is_on_hold(desk, wait, state):
    await add(desk.database, destination("other", state=state, reason=StopReason.FAILING))
    await wait("other")
    await wait("other", state="on_hold")
    exposed = await desk.expose()
    assert exposed[DEPTH, "other", "pending"] == 0
    assert exposed[DEPTH, "other", "on_hold"] == 2


async def test_the_age_is_that_of_the_oldest_that_waits(desk, wait, clock):
    assert (await desk.expose())[OLDEST, "soc"] == 0
    for number, (state, hours) in enumerate((("pending", 2), ("on_hold", 3), ("dead", 4))):
        created_at = clock.now() + KEPT - timedelta(hours=hours)
        await wait(number=number, state=state, created_at=created_at)
    assert (await desk.expose())[OLDEST, "soc"] == timedelta(hours=3).total_seconds()


async def test_an_idle_destination_is_there_with_zeros(desk):
    exposed = await desk.expose()
    assert exposed[DEPTH, "soc", "pending"] == exposed[DEPTH, "soc", "on_hold"] == 0
    assert exposed[DEAD, "soc"] == exposed[BREAKER, "soc"] == 0
    assert exposed[UP,] == 1


async def test_routing_is_on_hold_until_a_configuration_was_applied(desk, database):
    assert (await desk.expose())["tocsin_routing_on_hold",] == 0
    name = sequences.c.name == "configuration_applied_from"
    await database.write(lambda connection: connection.execute(delete(sequences).where(name)))
    assert (await desk.expose())["tocsin_routing_on_hold",] == 1


async def test_events_wait_to_be_routed(desk, store):
    await store(alert(1), alert(2))
    assert (await desk.expose())["tocsin_events_unrouted",] == 2
    await desk.work()
    assert (await desk.expose())["tocsin_events_unrouted",] == 0


@pytest.mark.parametrize(
    ("state", "seconds", "breaker"),
    [
        (DestinationState.ACTIVE, None, 0),
        (DestinationState.ACTIVE, 60, 0),  # held back, since it had too much to do
        (DestinationState.PAUSED, 60, 1),
        (DestinationState.PAUSED, 0, 2),
        (DestinationState.DISABLED, None, 0),
    ],
)
async def test_the_breaker_is_open_until_a_probe_is_due(desk, clock, state, seconds, breaker):
    until = None if seconds is None else clock.now() + KEPT + timedelta(seconds=seconds)
    paused = destination("other", state=state, health=HealthStatus(held_until=until))
    await add(desk.database, paused)
    exposed = await desk.expose()
    assert exposed[BREAKER, "other"] == breaker
    states = {word: exposed[STATE, "other", word] for word in ("active", "paused", "disabled")}
    assert states == dict.fromkeys(states, 0) | {state.value: 1}


async def test_the_breaker_is_half_open_while_a_probe_is_under_way(desk, wait, clock):
    until = clock.now() + timedelta(minutes=1)
    paused = destination(
        "other", state=DestinationState.PAUSED, health=HealthStatus(held_until=until)
    )
    await add(desk.database, paused)
    await wait("other", number=1)
    assert (await desk.expose())[BREAKER, "other"] == 1
    await desk.queue.claim("other", 1, clock.now())
    assert (await desk.expose())[BREAKER, "other"] == 2


def series_of(exposed: Exposed, name: str) -> list[tuple]:
    return [key for key in exposed if name in key[1:]]


async def remove(database, name: str) -> None:
    statement = update(destinations).where(destinations.c.name == name)
    deleted = statement.values(state=DestinationState.DELETED)
    await database.write(lambda connection: connection.execute(deleted) and None)


async def test_the_series_of_a_deleted_destination_end(desk, wait, database):
    await add(database, destination("other"))
    desk.metrics.meters.of("other")
    await wait(state="dead")
    exposed = await desk.expose()
    assert (DEAD, "soc") in exposed
    assert (ATTEMPTS, "soc", "failed") in exposed
    await remove(database, "soc")
    exposed = await desk.expose()
    assert not series_of(exposed, "soc")
    assert (ATTEMPTS, "other", "failed") in exposed


async def test_a_worker_that_begins_meanwhile_is_not_forgotten(desk, database, monkeypatch):
    read = database.read

    async def begin_meanwhile(*arguments):
        result = await read(*arguments)
        desk.metrics.meters.of("soc")
        return result

    await remove(database, "soc")
    monkeypatch.setattr(database, "read", begin_meanwhile)
    assert (ATTEMPTS, "soc", "failed") in await desk.expose()


async def test_without_a_database_only_what_was_counted_is_shown(desk, store, database):
    await store(alert())
    await desk.work()
    await desk.expose()

    async def run(statement: str) -> None:
        await database.write(lambda connection: connection.execute(text(statement)) and None)

    await run("ALTER TABLE deliveries RENAME TO away")
    with structlog.testing.capture_logs() as logs:
        exposed = await desk.expose()
    assert "deliveries" in logs[0]["reason"]
    assert exposed[UP,] == 0
    assert exposed[ATTEMPTS, "soc", "delivered"] == 1
    assert (DEPTH, "soc", "pending") not in exposed
    assert math.isnan(exposed["tocsin_events_unrouted",])
    await run("ALTER TABLE away RENAME TO deliveries")
    assert (await desk.expose())[UP,] == 1


async def test_what_a_predecessor_left_is_taken_over(tmp_path, clock):
    (tmp_path / "plugins.toml").write_text("")
    settings = Settings(data_dir=tmp_path, plugins_file=tmp_path / "plugins.toml")
    event = alert()

    def offer(connection, queue) -> None:
        from tocsin.events import emit_events

        emit_events(connection, [event])
        queue.offer(connection, [(event, "soc")], clock.now())

    async with open_node(settings, clock) as node:
        await node.database.write(offer, node.workers.queue)
        await node.workers.queue.claim("soc", 1, clock.now())
    async with open_node(settings, clock) as node:
        exposed = Exposed(await node.api.services.metrics.expose())
    assert exposed["tocsin_delivery_takeovers_total",] == 1


async def test_suppressed_events_are_counted_over_all_rules(desk, database):
    assert (await desk.expose())["tocsin_events_suppressed",] == 0
    facts = {"owner": "ana", "reason": "a test", "title": "*scan*", "created_by": "ana"}
    times = dict.fromkeys(("created_at", "ends_at"), datetime(2026, 11, 1, tzinfo=UTC))
    rows = [{"name": f"r{n}", "suppressed_events": n, **facts, **times} for n in (2, 3)]
    add_rules = insert(suppressions).values(rows)
    await database.write(lambda connection: connection.execute(add_rules) and None)
    assert (await desk.expose())["tocsin_events_suppressed",] == 5


@pytest.mark.parametrize(
    ("statement", "index"),
    [
        (gauges.BACKLOGS, "SCAN deliveries USING INDEX ix_deliveries_due"),
        (gauges.BACKLOGS, "SEARCH deliveries USING INDEX ix_deliveries_resting (state=?)"),
        (gauges.UNROUTED, "ix_events_unrouted"),
    ],
)
async def test_only_what_waits_and_rests_is_looked_at(tmp_path, statement, index):
    engine = make_engine(tmp_path / "plan.db")
    with engine.connect() as connection:
        metadata.create_all(connection)
        compiled = statement.compile(dialect=sqlite.dialect(paramstyle="named"))
        parameters = dict.fromkeys(compiled.params, 1)
        rows = connection.execute(text(f"EXPLAIN QUERY PLAN {compiled}"), parameters)
        steps = " | ".join(row.detail for row in rows)
    engine.dispose()
    assert index in steps
