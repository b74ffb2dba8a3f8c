"""Order of a subject's events in one ticket, despite failures and killed nodes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from sqlalchemy import func, insert, select

import tocsin_templates
from tocsin import Event, EventType
from tocsin.delivery.destinations.repository import Destination, destination_to_row
from tocsin.delivery.destinations.samples import build_sample
from tocsin.delivery.metrics.meters import DeliveryMetrics
from tocsin.delivery.queue.queue import DeliveryQueue
from tocsin.delivery.rendering import Renderer
from tocsin.delivery.routing.router import Router
from tocsin.delivery.sending.worker import Worker
from tocsin.events import Notifiers, emit_events
from tocsin.identifiers import new_id
from tocsin.metrics import Metrics
from tocsin.registry import ManagedBy
from tocsin.store.tables import deliveries, destinations, events
from tocsin.testing import Fault, ReceiverSimulator, loopback_client, make_settings, make_tools
from tocsin_plugins.ticketing import Ticketing
from workers import flush

from .github_simulator import REPOSITORY, TOKEN, GitHubSimulator

FAULTS = (Fault.ERROR, Fault.LOST, Fault.RESTARTED, Fault.CUT, Fault.THROTTLED)
NAME = "tickets"


class Office:
    """A node that is sometimes killed, and a tracker that sometimes fails."""

    def __init__(self, database, clock, simulator: ReceiverSimulator, seed: int) -> None:
        self.database, self.clock, self.simulator = database, clock, simulator
        self.random = Random(seed)
        self.notifiers = Notifiers()
        self.queue = DeliveryQueue(database)
        self.metrics = DeliveryMetrics(Metrics(clock), database, clock)
        self.router = Router(self.queue, database, clock, self.notifiers, self.metrics.routed)
        self.http = loopback_client()
        self.kills = self.faults = 0

    async def configure(self) -> None:
        facts = {"plugin": "ticketing", "managed_by": ManagedBy.FILE, "settings": {}}
        now = self.clock.now()
        self.destination = Destination(
            name=NAME, created_by="me", created_at=now, updated_at=now, **facts
        )
        rows = destination_to_row(self.destination)
        await self.database.write(lambda c: c.execute(insert(destinations), rows) and None)

    def hire(self) -> Worker:
        """Start a node without stored state."""
        given = {"tracker": "github", "url": self.simulator.url, "secret": TOKEN}
        patient = {"retry_schedule": ["1m"] * 50, "pause_after_failures": 1_000, "timeout": "10s"}
        settings = make_settings(Ticketing, NAME, project=REPOSITORY, **given, **patient)
        return Worker(
            self.destination,
            Ticketing(settings, make_tools(self.http, NAME, self.clock)),
            renderer=Renderer(list(map(Path, tocsin_templates.tocsin_template_paths()))),
            queue=self.queue,
            database=self.database,
            notifier=self.notifiers["queued"],
            vacancy_notifier=self.notifiers["vacancies"],
            meter=self.metrics.meters.of(NAME),
        )

    async def shift(self) -> None:
        """Let a node work until it is killed or idle, and then advance the clock."""
        worker = self.hire()
        if self.random.random() < 0.5:
            self.simulator.fail(self.random.choice(FAULTS), after=self.random.randrange(20))
            self.faults += 1
        working = asyncio.create_task(self._work(worker))
        if self.random.random() < 0.3:
            await self._kill(working, worker)
        else:
            await working
        self.clock.advance(seconds=100)

    async def _work(self, worker: Worker) -> None:
        while await self.router.route_waiting():
            pass
        while await worker.claim():
            await flush(worker)

    async def _kill(self, working: asyncio.Task, worker: Worker) -> None:
        enough = len(self.simulator.requests) + self.random.randrange(60)
        while not working.done() and len(self.simulator.requests) < enough:  # noqa: ASYNC110
            await asyncio.sleep(0)
        self.kills += not working.done()
        working.cancel()
        attempts = [working, *worker._under_way]
        for task in attempts:
            task.cancel()
        for task in attempts:
            with suppress(asyncio.CancelledError):
                await task

    async def unfinished(self) -> int:
        queries = (
            select(func.count()).where(events.c.routed.is_(False)),
            select(func.count()).where(deliveries.c.state != "delivered"),
        )
        return await self.database.read(lambda c: sum(c.scalar(query) for query in queries))


@pytest.fixture
async def office(database, clock) -> AsyncIterator[Office]:
    async with GitHubSimulator(clock) as simulator:
        office = Office(database, clock, simulator, seed=7)
        await office.configure()
        yield office
        await office.http.close()


def story(schedule: str, number: int, now) -> Event:
    """Return a schedule's n-th failure in a row."""
    told = build_sample(EventType.INVESTIGATION_FAILED, "https://tocsin.example.com", now)
    data = {**told.data, "schedule_id": schedule, "consecutive_failures": number}
    return replace(told, id=new_id("evt"), subject=f"schedule:{schedule}", data=data)


async def tell(office: Office, subjects: int, each: int) -> dict[str, list[str]]:
    """Deliver this many events in mixed order; return their IDs by subject, in order."""
    told: dict[str, list[str]] = {}
    for number in range(1, each + 1):
        order = [f"schedule-{number}" for number in range(subjects)]
        office.random.shuffle(order)
        for place, schedule in enumerate(order):
            event = story(schedule, number, office.clock.now())
            await office.database.write(emit_events, [event])
            told.setdefault(schedule, []).append(event.id)
            if place % (subjects // 3) == 0:
                await office.shift()
    return told


async def run(office: Office, subjects: int, each: int) -> None:
    told = await tell(office, subjects, each)
    for _ in range(200):
        if not await office.unfinished():
            break
        await office.shift()
    assert not await office.unfinished()
    found = {}
    for ticket in office.simulator.objects():
        comments = [text.rpartition("Tocsin event ")[2] for text in ticket.notes]
        found[next(schedule for schedule in told if comments[0] in told[schedule])] = comments
    assert len(office.simulator.objects()) == subjects
    assert found == {schedule: ids[1:] for schedule, ids in told.items()}
    assert office.faults
    assert office.kills


@pytest.mark.full
async def test_a_few_subjects_are_as_many_tickets_with_their_comments_in_order(office):
    await run(office, subjects=6, each=10)


@pytest.mark.full
@pytest.mark.timeout(600)
async def test_a_thousand_events_on_a_hundred_subjects_are_a_hundred_tickets(office):
    await run(office, subjects=100, each=10)
