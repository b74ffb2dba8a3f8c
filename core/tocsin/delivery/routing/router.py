"""Routing loop, which turns events into deliveries."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import monotonic, time_ns
from types import MappingProxyType

import structlog
from sqlalchemy import Connection, null, union_all

from tocsin import metrics, tracing
from tocsin.clock import Clock
from tocsin.delivery.destinations.channels import OBSERVER_PREFIX
from tocsin.delivery.destinations.repository import SELECT_REVISIONS
from tocsin.delivery.queue.queue import DeliveryQueue
from tocsin.delivery.queue.states import Vacancy, queue_topic
from tocsin.delivery.routing.assignment import ShardAssignment, find_ready
from tocsin.delivery.routing.hold import load_applied_from, log_application
from tocsin.delivery.routing.plan import (
    Route,
    Routes,
    RoutingPlan,
    RoutingResult,
    find_offered,
    trace_plan,
)
from tocsin.delivery.routing.suppression import (
    SELECT_ACTIVE_NAMES,
    SuppressionMatches,
    match_rules,
)
from tocsin.delivery.sending.worker import Worker
from tocsin.delivery.sending.worker_pool import WorkerPool
from tocsin.events import (
    EVENTS,
    EventShare,
    Notifiers,
    UnroutedEvents,
    find_still_unrouted,
    hold_events,
    load_unrouted,
    lock_subjects,
    mark_routed,
)
from tocsin.loops import run_forever, run_to_end
from tocsin.model import Event
from tocsin.store import Database

_POLL = timedelta(seconds=1)
_BATCH = 200
_MIN_BATCH = 32  # however little room free workers have
_MAX_ROUTING_SECONDS = 0.25
_QUICK_PAIRS = 500  # of events and routes, which take about a microsecond each
_VACANCY_PATIENCE = timedelta(milliseconds=200)
_RELATED_DELAY = timedelta(milliseconds=50)
_GATHERING_SECONDS = 0.005  # events that occur right after others are routed together
_SELECT_CURRENT = union_all(
    SELECT_REVISIONS, SELECT_ACTIVE_NAMES.add_columns(null().label("revision"))
)
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class RoutingBatch:
    """The oldest unrouted events, and the routes when they were read."""

    unrouted: UnroutedEvents
    routes: Sequence[Route]
    revisions: Sequence[tuple[str, int]]
    is_share: bool
    """Whether other shards may contain older unrouted events."""
    suppression: SuppressionMatches

    def is_current(self, connection: Connection) -> bool:
        """Return, with a single query, whether destinations and suppression rules are unchanged."""
        rows = connection.execute(_SELECT_CURRENT, {"now": self.suppression.at}).all()
        rules = {row.name for row in rows if row.revision is None}
        revisions = {row.name: row.revision for row in rows if row.revision is not None}
        known = {rule.name for rule in self.suppression.rules}
        return rules == known and revisions == dict(self.revisions)

    @property
    def is_quick(self) -> bool:
        """Whether matching the events takes less time than starting a thread."""
        pairs = len(self.unrouted.events) * len(self.routes)
        return pairs <= _QUICK_PAIRS and all(route.when is None for route in self.routes)


async def route_events(
    database: Database,
    queue: DeliveryQueue,
    routes: Routes,
    most: int,
    now: datetime,
    *,
    workers: Mapping[str, Worker] = MappingProxyType({}),
    share: EventShare | None = None,
) -> RoutingResult:
    """Turn the oldest unrouted events, or those in a share, into deliveries.

    Conditions can be slow, so a separate thread evaluates them outside any transaction. If there
    are only a few routes without conditions, no thread is necessary. If destinations change
    meanwhile, routing starts again. `workers` are workers with a vacancy, which start with the
    deliveries that are leased to them. Their room is reserved before the events are read, so that
    it is still free afterward.
    """
    reserved = {name: room for name, worker in workers.items() if (room := worker.reserve())}
    try:
        while True:
            started_ns = time_ns()
            batch = await database.read(
                _read_batch, routes, most, now, whole=bool(workers), share=share
            )
            if not batch.unrouted.events and not batch.unrouted.unreadable:
                return RoutingResult(0, frozenset(), {})
            plan = await _plan_batch(batch)
            vacancies = _choose_vacancies(batch, plan, workers, reserved)
            # otherwise a lease would be held by nobody
            result = await run_to_end(
                _store_and_begin(
                    database, queue, batch, plan, now, workers=workers, vacancies=vacancies
                )
            )
            if result is not None:
                if tracing.is_on():
                    trace_plan(plan, started_ns)
                return result
            routes.forget()
    finally:
        for name in reserved:
            workers[name].leave_room()


def _read_batch(
    connection: Connection,
    routes: Routes,
    most: int,
    now: datetime,
    *,
    whole: bool,
    share: EventShare | None,
) -> RoutingBatch:
    current = routes.current(connection, now)
    whole = whole or tracing.is_on() or any(route.when is not None for route in current.routes)
    unrouted = load_unrouted(connection, most, whole=whole, share=share)
    suppression = match_rules(connection, unrouted.events, current.rules, now)
    return RoutingBatch(unrouted, current.routes, current.revisions, share is not None, suppression)


async def _plan_batch(batch: RoutingBatch) -> RoutingPlan:
    stopped = threading.Event()
    try:
        if batch.is_quick:
            return _match_events(batch, stopped)
        return await asyncio.to_thread(_match_events, batch, stopped)
    finally:
        stopped.set()


def _match_events(batch: RoutingBatch, stopped: threading.Event) -> RoutingPlan:
    """Return the deliveries for as many events as there is time for."""
    plan = RoutingPlan()
    begin = monotonic()
    for event in batch.unrouted.events:
        for route in batch.routes:
            if stopped.is_set():
                return plan
            if not batch.suppression.excludes(event, route.destination):
                _match_event(plan, event, route)
        plan.routed.append(event)
        if monotonic() - begin > _MAX_ROUTING_SECONDS:
            break
    return plan


def _match_event(plan: RoutingPlan, event: Event, route: Route) -> None:
    try:
        if route.takes(event):
            plan.wanted.append((event, route.destination))
    except Exception as error:  # noqa: BLE001 - one event or route stops no other
        reason = f"the filters of {route.destination} could not be evaluated: {error}"
        plan.on_hold.append((event, route.destination, reason))
        facts = {"destination": route.destination, "event_id": event.id, "reason": str(error)}
        _log.warning("routing failed; the delivery is on hold", **facts)


def _choose_vacancies(
    batch: RoutingBatch,
    plan: RoutingPlan,
    workers: Mapping[str, Worker],
    reserved: Mapping[str, Vacancy],
) -> dict[str, Vacancy]:
    """Return the reserved rooms of workers that serve the revisions used for routing."""
    revisions, wanted = dict(batch.revisions), {to for _, to in plan.wanted}.intersection(reserved)
    return {name: reserved[name] for name in wanted if workers[name].revision == revisions[name]}


async def _store_and_begin(
    database: Database,
    queue: DeliveryQueue,
    batch: RoutingBatch,
    plan: RoutingPlan,
    now: datetime,
    *,
    workers: Mapping[str, Worker],
    vacancies: Mapping[str, Vacancy],
) -> RoutingResult | None:
    result = await database.write(_store_plan, queue, batch, plan, now, vacancies=vacancies)
    leased = result.leased if result else {}
    await asyncio.gather(*(workers[name].accept(claims) for name, claims in leased.items()))
    return result


def _store_plan(
    connection: Connection,
    queue: DeliveryQueue,
    batch: RoutingBatch,
    plan: RoutingPlan,
    now: datetime,
    *,
    vacancies: Mapping[str, Vacancy],
) -> RoutingResult | None:
    """Store the deliveries and return the result; None if routing has to start again.

    This is necessary if destinations or suppression rules have changed, or if another node has
    routed all of these events meanwhile.
    """
    # or a later event of a subject could be offered before an earlier one
    lock_subjects(
        connection, {name for each in plan.routed for name in (each.subject, *each.related)}
    )
    if not batch.is_current(connection):
        return None
    ready = plan.routed
    if batch.is_share:
        ready = find_ready(connection, plan.routed)
        if not ready and plan.routed:
            return RoutingResult(0, frozenset(), {}, is_waiting=True)
    waiting = mark_routed(connection, ready)
    unreadable = {}
    if batch.unrouted.unreadable and len(ready) == len(plan.routed):
        still = find_still_unrouted(connection, batch.unrouted.unreadable)
        unreadable = {id_: batch.unrouted.unreadable[id_] for id_ in sorted(still)}
    if not waiting and not unreadable:
        return None
    routed = [event for event in ready if event.id in waiting]
    has_observers = any(name.startswith(OBSERVER_PREFIX) for name, _ in batch.revisions)
    known = find_offered(connection, routed) if has_observers else frozenset()

    def is_new(event: Event, to: str) -> bool:
        return event.id in waiting and (event.id, to) not in known

    wanted = [(event, to) for event, to in plan.wanted if is_new(event, to)]
    on_hold = [(event, to, why) for event, to, why in plan.on_hold if is_new(event, to)]
    leased = queue.offer(connection, wanted, now, on_hold, vacancies)
    batch.suppression.record(connection, routed)
    for id_, why in unreadable.items():
        _log.error("routing failed; the event is on hold", event_id=id_, reason=why)
    hold_events(connection, unreadable)
    offered = Counter(to for _, to in wanted)
    queued = {to for to, count in offered.items() if count > len(leased.get(to, ()))}
    return RoutingResult(len(routed) + len(unreadable), frozenset(queued), leased)


def _batch_size(workers: Mapping[str, Worker]) -> int:
    """Return how many events to route so that all can be leased to free workers."""
    rooms = [vacancy.most for worker in workers.values() if (vacancy := worker.vacancy)]
    return min(_BATCH, max(_MIN_BATCH, *rooms)) if rooms else _BATCH


class Router:
    """Turns events into deliveries and notifies the workers."""

    def __init__(
        self,
        queue: DeliveryQueue,
        database: Database,
        clock: Clock,
        notifiers: Notifiers,
        routed: metrics.Counter,
        *,
        pool: WorkerPool | None = None,
        assignment: ShardAssignment | None = None,
    ) -> None:
        """Lease deliveries to free workers in the `pool`, if there is one.

        With an `assignment`, leave most events in other nodes' shards to these nodes.
        """
        self._queue = queue
        self._database = database
        self._clock = clock
        self._notifiers = notifiers
        self._routed = routed
        self._pool = pool
        self._assignment = assignment
        self._is_behind = self._is_waiting = False
        self._has_leased = False
        self._routes = Routes()
        self._is_applied: bool | None = None

    async def run(self) -> None:
        """Route events until canceled."""
        await run_forever(self._step, self._clock, "routing")

    async def _step(self) -> None:
        if not await self.route_waiting():
            await self._notifiers[EVENTS].wait(_RELATED_DELAY if self._is_waiting else _POLL)
        elif not self._is_behind:
            await asyncio.sleep(_GATHERING_SECONDS)

    async def route_waiting(self) -> int:
        """Route the waiting events, and return their number: 0 until something was applied."""
        if not self._is_applied and not await self._look_for_application():
            return 0
        workers = await self._wait_for_workers()
        now = self._clock.now()
        most, share = _batch_size(workers), None
        if self._assignment is not None:
            share = await self._assignment.find(now, is_behind=self._is_behind)
        result = await route_events(
            self._database, self._queue, self._routes, most, now, workers=workers, share=share
        )
        self._is_behind, self._is_waiting = result.count >= most, result.is_waiting
        self._has_leased = bool(result.leased)
        self._routed.inc(result.count)
        for name in result.queued:
            self._notifiers[queue_topic(name)].notify()
        return result.count

    async def _wait_for_workers(self) -> Mapping[str, Worker]:
        """Return the free workers; wait for busy ones if their receivers respond fast."""
        if self._pool is None:
            return {}
        is_worth_waiting = self._has_leased or self._pool.is_prompt
        return await self._pool.wait_for_free(
            _VACANCY_PATIENCE if is_worth_waiting else timedelta()
        )

    async def _look_for_application(self) -> bool:
        """Return whether a configuration was applied; log when waiting for it starts and stops."""
        is_applied = await self._database.lookup(load_applied_from) is not None
        log_application(before=self._is_applied, now=is_applied)
        self._is_applied = is_applied
        return is_applied
