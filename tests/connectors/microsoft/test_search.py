"""Log searches over existing and missing tables."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from tests.connectors.microsoft.kql_reader import read

from tocsin import Entity, EntityKind, Refused, TryLater, Window
from tocsin_connectors.siem.microsoft.search import LogRows, LogTableSearcher
from tocsin_connectors.siem.microsoft.tables import HUNTING_TABLES

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
WINDOW = Window(NOON - timedelta(hours=1), NOON)
ATTACKER = Entity(EntityKind.IP, "203.0.113.7")
WORDS = b"""{"error":{"message":"Failed to resolve table or column expression named '%s'"}}"""


def row(minutes: int) -> dict:
    at = NOON - timedelta(minutes=minutes)
    record = {"RemoteIP": "203.0.113.7", "ActionType": "ConnectionSuccess"}
    return {
        "EventTime": at.isoformat(),
        "EventTable": "DeviceNetworkEvents",
        "EventRecord": record,
    }


class Service:
    """Answers rows, and refuses what it has not."""

    def __init__(
        self,
        *rows: dict,
        absent: tuple[str, ...] = (),
        barred: str = "",
        lacking: str | None = None,
    ) -> None:
        self.answer, self.absent, self.barred = LogRows(rows, lacking), absent, barred
        self.asked = list[set[str]]()
        self.searcher = LogTableSearcher(HUNTING_TABLES, "Timestamp", self.run)

    async def run(self, query: str, window: Window) -> LogRows:
        tables = {leg.table for leg in read(query).legs}
        self.asked.append(tables)
        await asyncio.sleep(0)  # so that others ask meanwhile
        for name in self.absent:
            if name in tables:
                raise Refused("400", status=400, response=WORDS % name.encode())
        if self.barred in tables:
            words = b"The table '%s' is on a plan that does not support this operation"
            raise Refused("400", status=400, response=words % self.barred.encode())
        return self.answer

    async def find(self, entity: Entity = ATTACKER, limit: int = 9) -> list[int]:
        events = self.searcher.events(entity, WINDOW, limit)
        return [(NOON - event.occurred_at) // timedelta(minutes=1) async for event in events]


async def test_found_events_are_returned():
    assert await Service(row(10), row(20)).find() == [10, 20]


async def test_results_respect_limit_and_window():
    assert await Service(row(0), row(10), row(20), row(60), row(61)).find() == [10, 20, 60]
    assert await Service(row(10), row(20)).find(limit=1) == [10]


async def test_missing_table_is_requested_once():
    service = Service(row(10), absent=("DeviceEvents", "EmailEvents"))
    assert await service.find() == [10]
    assert await service.find() == [10]
    assert len(service.asked) == 4
    assert not {"DeviceEvents", "EmailEvents"} & service.asked[-1]


async def test_concurrent_searches_handle_a_missing_table():
    service = Service(row(10), absent=("DeviceEvents", "EmailEvents"))
    both = asyncio.gather(service.find(), service.find())
    assert await asyncio.wait_for(both, 5) == [[10], [10]]


async def test_no_remaining_table_returns_nothing():
    service = Service(row(10), absent=tuple(table.name for table in HUNTING_TABLES))
    assert await service.find() == []


async def test_failing_table_hides_no_other_and_is_reported():
    service = Service(row(10), barred="DeviceEvents")
    for _ in range(2):
        events = service.searcher.events(ATTACKER, WINDOW, 9)
        assert (await anext(events)).occurred_at == NOON - timedelta(minutes=10)
        with pytest.raises(TryLater, match="DeviceEvents cannot be searched"):
            await anext(events)
    assert len(service.asked) == 3


@pytest.mark.parametrize(
    ("status", "words"),
    [(400, b"Query timeout"), (400, b"DeviceEvents, EmailEvents: odd"), (413, b"DeviceEvents")],
)
async def test_other_refusals_are_raised(status, words):
    async def run(query, window):
        raise Refused("no", status=status, response=words)

    searcher = LogTableSearcher(HUNTING_TABLES, "Timestamp", run)
    with pytest.raises(Refused):
        await anext(searcher.events(ATTACKER, WINDOW, 9))


async def test_partial_results_are_returned_and_reported():
    service = Service(row(10), lacking="PartialError: too much")
    events = service.searcher.events(ATTACKER, WINDOW, 9)
    assert (await anext(events)).occurred_at == NOON - timedelta(minutes=10)
    with pytest.raises(TryLater, match="PartialError: too much"):
        await anext(events)


async def test_entities_without_columns_send_no_query():
    service = Service(row(10))
    assert await service.find(Entity(EntityKind.IP, "")) == []
    assert service.asked == []
