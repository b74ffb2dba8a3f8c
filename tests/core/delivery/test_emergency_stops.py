"""A destination that a person stopped: nothing but its time or a person enables it."""

from __future__ import annotations

from datetime import timedelta

from tocsin.delivery.destinations.lifecycle import (
    DestinationSpec,
    enable_due_destinations,
    update_destination,
)
from tocsin.delivery.destinations.reconciliation import apply_destinations
from tocsin.delivery.destinations.repository import (
    DestinationState,
    StopReason,
    load_destination,
)
from tocsin.registry import ManagedBy
from tocsin.stops import StopKind, StopOrder, find_stop

HOUR = timedelta(hours=1)


async def stop_destination(database, clock, until=None) -> None:
    def stop(connection) -> None:
        found = load_destination(connection, "soc", lock=True)
        update_destination(connection, found, None, StopOrder("ana", None, until), clock.now())

    await database.write(stop)


async def apply_file(database, clock, *urls: str) -> None:
    wanted = [
        DestinationSpec("soc", "webhook", {"plugin": "webhook", "url": url}, ManagedBy.FILE)
        for url in urls
    ]
    await database.write(apply_destinations, wanted, "ana", clock.now())


async def test_the_file_does_not_undo_it_not_even_by_removing_and_restoring(database, clock):
    await apply_file(database, clock, "https://soc.example.org/")
    await stop_destination(database, clock)
    await apply_file(database, clock, "https://other.example.org/")
    await apply_file(database, clock)
    removed = await database.read(load_destination, "soc")
    assert removed.reason is StopReason.REMOVED
    await apply_file(database, clock, "https://soc.example.org/")
    restored = await database.read(load_destination, "soc")
    assert (restored.state, restored.reason) == (DestinationState.DISABLED, StopReason.MANUAL)
    assert restored.detail == "by ana, until someone enables it"


async def test_it_is_enabled_at_its_time_once(database, clock):
    await apply_file(database, clock, "https://soc.example.org/")
    await stop_destination(database, clock, clock.now() + HOUR)
    assert await database.write(enable_due_destinations, clock.now()) == []
    clock.advance(hours=1)
    assert await database.write(enable_due_destinations, clock.now()) == ["soc"]
    assert await database.write(enable_due_destinations, clock.now()) == []
    enabled = await database.read(load_destination, "soc")
    assert (enabled.state, enabled.detail) == (DestinationState.ACTIVE, None)


async def test_the_end_of_a_stop_does_not_restore_what_the_file_no_longer_names(database, clock):
    await apply_file(database, clock, "https://soc.example.org/")
    await stop_destination(database, clock, clock.now() + HOUR)
    await apply_file(database, clock)
    clock.advance(hours=1)
    assert await database.write(enable_due_destinations, clock.now()) == []
    assert (await database.read(load_destination, "soc")).reason is StopReason.REMOVED
    assert await database.read(find_stop, StopKind.DESTINATION, "soc", clock.now()) is None
