"""Which events go to which destination."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from datetime import timedelta

import pytest
import structlog
from sqlalchemy import func, select

from tocsin.delivery.destinations.lifecycle import DestinationSpec, update_destination
from tocsin.delivery.destinations.repository import DestinationState, StopReason
from tocsin.delivery.metrics.meters import DeliveryMetrics
from tocsin.delivery.queue.queue import DeliveryQueue
from tocsin.delivery.queue.requeue import requeue_on_hold
from tocsin.delivery.routing.hold import (
    count_missed_events,
    load_applied_from,
    record_application,
    release_missed_events,
)
from tocsin.delivery.routing.plan import Route, Routes
from tocsin.delivery.routing.reroute import (
    ReroutedEvents,
    count_unmatched_events,
    reroute_events,
)
from tocsin.delivery.routing.router import Router, route_events
from tocsin.events import Notifiers, emit_events, mark_routed
from tocsin.metrics import Metrics
from tocsin.model import EventType
from tocsin.registry import ManagedBy
from tocsin.store.tables import EPOCH, deliveries, sequences

from .conftest import add, alert, destination

SECOND = timedelta(seconds=1)


@pytest.mark.parametrize(
    ("settings", "taken"),
    [
        ({}, True),
        ({"min_severity": "high"}, True),
        ({"min_severity": "Critical"}, False),
        ({"events": ["schedule-disabled"]}, False),
        ({"events": ["schedule-disabled", "incident-alert"]}, True),
        ({"providers": ["edge", "cloud"]}, True),
        ({"providers": ["cloud"]}, False),
        ({"when": "data.provider == 'edge'"}, True),
        ({"when": "data.provider == 'cloud'"}, False),
        ({"when": "event_type == 'incident-alert' and 'in' in subject"}, True),
        ({"when": "context.incident.nothing.of.this"}, False),
        ({"when": "data.severity > 3"}, True),  # it cannot be decided
        ({"a setting": "of the plugin's own"}, True),
        ({"min_severity": "what a later version knows"}, True),
    ],
)
def test_a_route_takes_what_its_settings_name(settings, taken):
    assert Route.of(destination(settings=settings)).takes(alert(severity="High")) is taken


@pytest.mark.parametrize("settings", [{"min_severity": "Critical"}, {"providers": ["cloud"]}])
def test_severity_and_provider_concern_incident_alerts_alone(settings):
    failed = replace(alert(), event_type=EventType.INVESTIGATION_FAILED, data={})
    assert Route.of(destination(settings=settings)).takes(failed)


@pytest.mark.parametrize(
    ("members", "routed"),
    [
        ({}, True),
        ({"state": DestinationState.PAUSED, "reason": StopReason.FAILING}, True),
        ({"state": DestinationState.DISABLED, "reason": StopReason.MANUAL}, True),
        ({"state": DestinationState.DISABLED, "reason": StopReason.GONE}, True),
        ({"state": DestinationState.DISABLED, "reason": StopReason.REMOVED}, False),
        ({"state": DestinationState.DELETED}, False),
    ],
)
async def test_events_wait_for_destinations_that_may_come_back(database, clock, members, routed):
    await add(database, destination(**members))
    await database.write(emit_events, [alert()])
    await route_events(database, DeliveryQueue(database), Routes(), 10, clock.now())
    offered = await database.read(lambda c: c.scalars(select(deliveries.c.destination)).all())
    assert offered == (["soc"] if routed else [])


async def test_a_change_concerns_the_very_next_event(database, clock):
    routes, queue = Routes(), DeliveryQueue(database)
    made = await add(database, destination())
    await database.write(emit_events, [alert(1)])
    assert (await route_events(database, queue, routes, 9, clock.now())).queued == {"soc"}
    await add(database, replace(made, settings={"providers": ["cloud"]}, revision=2))
    await database.write(emit_events, [alert(2)])
    assert (await route_events(database, queue, routes, 9, clock.now())).queued == frozenset()


def forget_application(connection):
    """Leave the database as one to which nothing was ever applied."""
    name = sequences.c.name == "configuration_applied_from"
    connection.execute(sequences.delete().where(name))


@pytest.fixture
def router(database, clock) -> Router:
    metrics = DeliveryMetrics(Metrics(clock), database, clock)
    return Router(DeliveryQueue(database), database, clock, Notifiers(), metrics.routed)


async def test_events_wait_until_a_configuration_was_applied(database, router):
    await database.write(forget_application)
    await database.write(emit_events, [alert(1), alert(2)])
    with structlog.testing.capture_logs() as logs:
        assert [await router.route_waiting() for _ in range(2)] == [0, 0]
        await add(database, destination())
        await database.write(record_application)
        assert await router.route_waiting() == 2
    assert await database.read(lambda c: c.scalar(select(func.count(deliveries.c.id)))) == 2
    assert [line["log_level"] for line in logs] == ["warning", "info"]
    assert await database.read(count_missed_events) == 0


async def test_delivered_events_from_before_an_application_are_not_searched_again(database, router):
    await add(database, destination())
    await database.write(emit_events, [alert(1)])
    assert await router.route_waiting() == 1
    await database.write(forget_application)
    await database.write(record_application)
    assert await database.read(load_applied_from) == EPOCH


async def test_events_that_were_routed_before_anything_was_applied_can_still_be_sent(
    database, router
):
    early, waiting = alert(1), alert(2)
    await database.write(forget_application)
    await database.write(emit_events, [early])
    await database.write(mark_routed, [early])  # as earlier versions did
    assert await database.read(count_missed_events) == 1
    await database.write(record_application)
    assert await database.read(count_missed_events) == 1
    await add(database, destination())
    assert await database.write(release_missed_events) == 1
    await database.write(emit_events, [waiting])
    assert await router.route_waiting() == 2
    assert await database.read(count_missed_events) == 0


async def test_events_of_nobody_are_rerouted_once_to_the_destinations_that_match_now(
    database, router
):
    observer = destination("hook:watch", managed_by=ManagedBy.PLUGIN)
    await add(database, observer)
    early = [alert(number) for number in range(5)]
    shifted = [
        replace(event, timestamp=event.timestamp + number * SECOND)
        for number, event in enumerate(early)
    ]
    await database.write(emit_events, shifted)
    assert await router.route_waiting() == 5
    await add(database, destination(settings={"when": "data.incident_number != 3"}))
    begin, end = shifted[0].timestamp, shifted[-1].timestamp
    assert await database.read(count_unmatched_events, begin, end) == 4  # the end is exclusive
    first = await database.write(reroute_events, begin, end, most=3)
    assert first == ReroutedEvents(3, shifted[3].timestamp)
    assert await database.write(reroute_events, first.next_since, end) == ReroutedEvents(1, None)
    assert await router.route_waiting() == 4
    assert await database.write(reroute_events, begin, end) == ReroutedEvents(1, None)
    assert await router.route_waiting() == 1
    query = select(deliveries.c.event_id).where(deliveries.c.destination == "soc")
    sent = await database.read(lambda connection: sorted(connection.scalars(query).all()))
    assert sent == sorted(event.id for event in early[:3])
    assert await database.read(count_unmatched_events, begin, end) == 1
    assert len(await offered(database)) == 5 + 3


@pytest.fixture
def route(database, clock):
    routes, queue = Routes(), DeliveryQueue(database)
    return lambda: route_events(database, queue, routes, 9, clock.now())


async def offered(database) -> list[tuple[str, str, str | None]]:
    columns = deliveries.c.destination, deliveries.c.state, deliveries.c.reason
    query = select(*columns).order_by(deliveries.c.destination, deliveries.c.event_id)
    return await database.read(lambda connection: [tuple(row) for row in connection.execute(query)])


async def test_writers_do_not_wait_for_a_slow_condition(database, clock, route, monkeypatch):
    is_matching, may_go_on = threading.Event(), threading.Event()

    def wait(*_) -> bool:
        is_matching.set()
        return may_go_on.wait(10)

    monkeypatch.setattr(Route, "takes", wait)
    await add(database, destination(settings={"when": "true"}))
    await database.write(emit_events, [alert(1)])
    routing = asyncio.create_task(route())
    await asyncio.to_thread(is_matching.wait, 10)
    await asyncio.wait_for(database.write(emit_events, [alert(2)]), 5)
    may_go_on.set()
    assert (await routing).count == 1


async def test_a_destination_that_changes_while_events_are_matched_counts_as_changed(
    database, route, monkeypatch
):
    made = await add(database, destination(settings={"when": "true"}))
    await database.write(emit_events, [alert(1)])
    loop, takes, changed = asyncio.get_running_loop(), Route.takes, []

    def change_once(self, event) -> bool:
        if not changed:
            later = replace(made, settings={"providers": ["cloud"]}, revision=2)
            changed.append(asyncio.run_coroutine_threadsafe(add(database, later), loop).result(10))
        return takes(self, event)

    monkeypatch.setattr(Route, "takes", change_once)
    assert (await route()).queued == frozenset()
    assert await offered(database) == []


async def test_a_condition_that_exceeds_its_limit_holds_its_own_delivery_alone(database, route):
    costly = "context.long|list|sort|unique|list|length > 1"
    await add(database, destination("costly", settings={"when": costly}))
    await add(database, destination("plain"))
    long = replace(alert(1), context={"long": "ab" * 100_000})
    await database.write(emit_events, [long, alert(2)])
    assert (await route()).queued == {"plain"}
    [costly, *plain] = await offered(database)
    assert costly[:2] == ("costly", "on_hold")
    assert "limit of characters and items" in costly[2]
    assert plain == [("plain", "pending", None)] * 2


@pytest.mark.parametrize("released_by", ["start of a node", "change of the condition"])
async def test_a_delivery_that_could_not_be_decided_is_sent_once_it_is_released(
    database, route, clock, released_by
):
    costly = "context.long|list|sort|unique|list|length > 1"
    made = await add(database, destination("costly", settings={"when": costly}))
    long = replace(alert(1), context={"long": "ab" * 100_000})
    await database.write(emit_events, [long])
    await route()
    if released_by == "start of a node":
        await database.write(requeue_on_hold, clock.now())
    else:
        mended = DestinationSpec("costly", "webhook", {"when": "false"}, ManagedBy.API, None)
        await database.write(update_destination, made, mended, None, clock.now())
    [(_, state, _)] = await offered(database)
    assert state == "pending"  # whatever the condition says now: it is better sent than lost
