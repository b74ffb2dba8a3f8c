"""A database in which something has happened, and the account of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import insert

from incident_rows import add_incidents
from tocsin.accounting import Period, report_period, trace_incident
from tocsin.delivery.destinations.repository import Destination, destination_to_row
from tocsin.events import emit_events, mark_routed
from tocsin.identifiers import new_id
from tocsin.incidents.coverage.ledger import ReadFailure, record_failure
from tocsin.incidents.coverage.positions import StreamKey, load_position
from tocsin.incidents.storage.alerts import IncidentPolicy
from tocsin.incidents.storage.store import store_page
from tocsin.model import ChangeType, Covered, Event, EventType, Page
from tocsin.registry import ManagedBy
from tocsin.store import Database
from tocsin.store.tables import attempts, deliveries, destinations

DAY = timedelta(days=1)
KEY = StreamKey("edge", "changed")
POLICY = IncidentPolicy("https://tocsin.example.org")


class Happenings:
    """Stores what happens now, as the service would, and accounts for it."""

    def __init__(self, database: Database, clock) -> None:
        self.database = database
        self.clock = clock

    async def read(self, *covered: tuple, key: StreamKey = KEY, **members: Any) -> None:
        """A page was read that covers these: source, start, end and why it is lost, if it is."""
        position = await self.database.read(load_position, key)
        intervals = tuple(
            Covered(source=source, start=start, end=end, lost=lost[0] if lost else None)
            for source, start, end, *lost in covered
        )
        page = Page(next_position={}, covered=intervals, **members)
        await self.database.write(
            store_page,
            key,
            page,
            revision=position.revision,
            policy=POLICY,
            now=self.clock.now(),
        )

    async def fail(self, reason: str = "it is away", *, key: StreamKey = KEY) -> None:
        """A stream could not be read."""
        failure = ReadFailure("later", reason)
        now = self.clock.now()
        await self.database.write(record_failure, key, failure, now, continues=True)

    async def sync(self, **columns: Any) -> int:
        """An incident came in."""
        [number] = await self.database.write(add_incidents, now=self.clock.now(), **columns)
        return number

    async def emit(
        self,
        subject: str = "incident:1",
        *,
        event_type: EventType | ChangeType = EventType.INCIDENT_ALERT,
        routed: bool = True,
        **data: Any,
    ) -> str:
        """An event happened; return its id."""
        event = Event(
            id=new_id("evt"),
            event_type=event_type,
            timestamp=self.clock.now(),
            data=data,
            subject=subject,
        )
        await self.database.write(emit_events, [event])
        if routed:
            await self.database.write(mark_routed, [event])
        return event.id

    async def destination(self, name: str = "soc", **members: Any) -> None:
        """A destination was configured."""
        now = self.clock.now()
        made = Destination(
            name=name,
            plugin="webhook",
            managed_by=ManagedBy.API,
            settings={},
            created_by="ana",
            created_at=now,
            updated_at=now,
        )
        health = replace(made.health, held_until=members.pop("held_until", None))
        free_at = {"free_at": members.pop("free_at", None)}
        await self._insert(
            destinations, destination_to_row(replace(made, health=health, **members)) | free_at
        )

    async def deliver(
        self,
        event: str,
        state: str,
        to: str = "soc",
        *,
        due: datetime | None = None,
        **columns: Any,
    ) -> str:
        """An event is on its way, and so far; return the delivery's id."""
        now = self.clock.now()
        row = {
            "id": new_id("dlv"),
            "event_id": event,
            "destination": to,
            "subject": "incident:1",
            "state": state,
            "attempts": 0,
            "schedule_start": 0,
            "due_at": due or now,
            "created_at": now,
            **columns,
        }
        await self._insert(deliveries, row)
        return row["id"]

    async def attempt(self, delivery: str, number: int, outcome: str, **columns: Any) -> None:
        """A delivery was tried."""
        usual = {"duration_ms": 12, "response": b"", "started_at": self.clock.now()}
        row = {"delivery_id": delivery, "number": number, "outcome": outcome, **usual, **columns}
        await self._insert(attempts, row)

    async def _insert(self, table, row: dict[str, Any]) -> None:
        await self.database.write(lambda connection: connection.execute(insert(table), row))

    async def prove(self, *, back: timedelta = DAY, ended: timedelta = timedelta()) -> dict:
        """The account of the time from so long ago, until so long ago."""
        now = self.clock.now()
        return await self.database.read(report_period, Period(now - back, now - ended), now)

    async def unaccounted(self, **period: timedelta) -> list[tuple[str, str]]:
        """What nothing explains: of which kind, and what."""
        proof = await self.prove(**period)
        return [(item["kind"], item["what"]) for item in proof["unaccounted"]]

    async def trace(self, number: int) -> dict | None:
        return await self.database.read(trace_incident, number)


@pytest.fixture
def happened(database, clock) -> Happenings:
    return Happenings(database, clock)
