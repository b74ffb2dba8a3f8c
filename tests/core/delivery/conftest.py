"""Fixtures of the tests of delivery: events that are stored, and a channel that does as told."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import structlog
from sqlalchemy import delete, insert

from tocsin import Channel, Delivery, Event, EventType, Health, Receipt, Tools
from tocsin.delivery.destinations.repository import Destination, destination_to_row
from tocsin.events import emit_events
from tocsin.identifiers import new_id
from tocsin.registry import ManagedBy
from tocsin.store.tables import destinations


def alert(number: int = 1, severity: str = "High") -> Event:
    from datetime import UTC, datetime

    return Event(
        id=new_id("evt"),
        event_type=EventType.INCIDENT_ALERT,
        timestamp=datetime(2026, 11, 21, 12, tzinfo=UTC),
        data={"incident_number": number, "severity": severity, "provider": "edge"},
        subject=f"incident:{number}",
        context={"epoch": 1},  # which deliveries add
    )


class Obedient(Channel):
    """Answers each delivery as `answer` does; keeps what it was handed."""

    answer: Callable[[Delivery], Receipt] = staticmethod(lambda _: Receipt(status=204))

    def __init__(self, settings, tools) -> None:
        super().__init__(settings, tools)
        self.deliveries: list[Delivery] = []

    async def check(self) -> Health:
        return Health(detail="obedient")

    async def deliver(self, delivery: Delivery) -> Receipt:
        self.deliveries.append(delivery)
        return self.answer(delivery)


@pytest.fixture
def make_channel(clock):
    def make(name: str = "soc", **settings) -> Obedient:
        tools = Tools(name=name, http=None, clock=clock, log=structlog.get_logger())
        return Obedient(Obedient.Settings(plugin="obedient", **settings), tools)

    return make


def destination(name: str = "soc", **members) -> Destination:
    from datetime import UTC, datetime

    now = datetime(2026, 11, 21, 12, tzinfo=UTC)
    facts = {"plugin": "obedient", "managed_by": ManagedBy.FILE, "settings": {}, "created_by": "me"}
    return Destination(name=name, created_at=now, updated_at=now, **{**facts, **members})


async def add(database, made: Destination) -> Destination:
    """Store a destination, in place of one of its name."""

    def replace_it(connection) -> None:
        connection.execute(delete(destinations).where(destinations.c.name == made.name))
        connection.execute(insert(destinations), destination_to_row(made))

    await database.write(replace_it)
    return made


@pytest.fixture
def store(database):
    async def store(*events: Event) -> None:
        await database.write(emit_events, events)

    return store
