"""What someone changes about a destination, and what becomes of what waits for it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import insert, select, update

from tocsin.delivery.destinations.lifecycle import (
    DestinationSpec,
    change_destination,
    create_destination,
    delete_destination,
    disable_destination,
    expire_deliveries,
    resume_destination,
    update_destination,
)
from tocsin.delivery.destinations.repository import (
    Destination,
    DestinationState,
    StopReason,
    load_destination,
    load_destinations,
)
from tocsin.delivery.health.breaker import HealthStatus
from tocsin.delivery.queue.queue import DeliveryQueue
from tocsin.delivery.queue.requeue import requeue_on_hold, requeue_pending
from tocsin.errors import NameTakenError
from tocsin.events import emit_events
from tocsin.registry import ManagedBy
from tocsin.stops import StopOrder
from tocsin.store.tables import deliveries, remote_objects

from .conftest import add, alert, destination

WRITTEN = DestinationSpec("soc", "obedient", {"timeout": "9s"}, ManagedBy.API, b"encrypted")


class Office:
    """Where destinations are made and changed, and what waits for them."""

    def __init__(self, database, clock) -> None:
        self.database = database
        self.clock = clock
        self.queue = DeliveryQueue(database)

    async def make(self, written: DestinationSpec = WRITTEN) -> Destination:
        return await self.database.write(create_destination, written, "ana", self.clock.now())

    async def do(self, verb, *arguments) -> Destination:
        """Do something to the destination as it is now."""

        def work(connection) -> Destination:
            found = load_destination(connection, "soc", lock=True)
            return verb(connection, found, *arguments, self.clock.now())

        return await self.database.write(work)

    async def load(self) -> Destination:
        return await self.database.read(load_destination, "soc")

    async def offer(self, name: str = "soc", state: str = "pending") -> None:
        """Put one delivery on its way to a destination, as far as this state."""
        event = alert()

        def work(connection) -> None:
            emit_events(connection, [event])
            self.queue.offer(connection, [(event, name)], self.clock.now())
            offered = update(deliveries).where(deliveries.c.event_id == event.id)
            connection.execute(offered.values(state=state))

        await self.database.write(work)

    async def states(self) -> list[tuple[str, str | None]]:
        """Return the state of each delivery and the reason, in their order."""
        query = select(deliveries.c.state, deliveries.c.reason).order_by(deliveries.c.id)
        return [tuple(row) for row in await self.database.read(lambda c: c.execute(query).all())]


@pytest.fixture
def office(database, clock) -> Office:
    return Office(database, clock)


# Creating


async def test_what_is_created_is_active_and_comes_back_as_it_was(office):
    made = await office.make()
    assert await office.load() == made
    assert (made.state, made.revision, made.created_by) == (DestinationState.ACTIVE, 1, "ana")
    assert (made.created_at, made.secrets) == (office.clock.now(), b"encrypted")


async def test_a_name_is_taken_until_its_destination_is_deleted(office):
    await office.make()
    with pytest.raises(NameTakenError):
        await office.make()
    await office.do(disable_destination)
    with pytest.raises(NameTakenError):
        await office.make()
    await office.do(delete_destination)
    office.clock.advance(hours=1)
    anew = await office.make()
    assert (anew.state, anew.revision) == (DestinationState.ACTIVE, 4)
    assert anew.created_at == office.clock.now()
    assert await office.load() == anew


async def test_a_name_that_is_used_again_knows_no_object_of_the_one_before(office, database):
    def remember(connection) -> None:
        for name in ("soc", "desk"):
            row = {"destination": name, "subject": "incident:1", "remote_id": "SIR-1"}
            more = {"home": "", "event_id": "", "updated_at": made.created_at}
            connection.execute(insert(remote_objects), row | more)

    made = await office.make()
    await database.write(remember)
    await office.do(delete_destination)
    await office.make()
    left = await database.read(lambda c: list(c.scalars(select(remote_objects.c.destination))))
    assert left == ["desk"]


# Changing


@pytest.mark.parametrize(
    "verb", [change_destination, disable_destination, resume_destination, delete_destination]
)
async def test_every_change_begins_a_new_revision_and_a_new_account(office, database, verb):
    await add(database, destination(health=HealthStatus(failures=7, holds=2)))
    changed = await office.do(verb)
    assert (changed.revision, changed.health) == (2, HealthStatus())


PAUSED = {"state": DestinationState.PAUSED, "reason": StopReason.FAILING, "detail": "503"}
GONE = {"state": DestinationState.DISABLED, "reason": StopReason.GONE, "detail": "410"}
MANUAL = {"state": DestinationState.DISABLED, "reason": StopReason.MANUAL}
STOP = StopOrder("ana", "Duplicate tickets")
ANEW = DestinationSpec("soc", "obedient", {"timeout": "8s"}, ManagedBy.API, b"other")


@pytest.mark.parametrize(
    ("before", "asked", "after"),
    [
        ({}, (None, True), (DestinationState.ACTIVE, 1)),
        ({}, (None, STOP), (DestinationState.DISABLED, 2)),
        ({}, (ANEW, None), (DestinationState.ACTIVE, 2)),
        ({}, (ANEW, STOP), (DestinationState.DISABLED, 2)),
        (PAUSED, (None, True), (DestinationState.ACTIVE, 2)),
        (PAUSED, (None, STOP), (DestinationState.DISABLED, 2)),
        (PAUSED, (ANEW, None), (DestinationState.ACTIVE, 2)),
        (GONE, (None, True), (DestinationState.ACTIVE, 2)),
        (GONE, (None, STOP), (DestinationState.DISABLED, 2)),
        (GONE, (ANEW, None), (DestinationState.ACTIVE, 2)),
        (MANUAL, (None, True), (DestinationState.ACTIVE, 2)),
        (MANUAL, (None, STOP), (DestinationState.DISABLED, 2)),
        (MANUAL, (ANEW, None), (DestinationState.DISABLED, 2)),
        (MANUAL, (ANEW, True), (DestinationState.ACTIVE, 2)),
    ],
)
async def test_new_settings_end_every_stop_but_someones_own(office, database, before, asked, after):
    await add(database, destination(**before))
    amended = await office.do(update_destination, *asked)
    assert (amended.state, amended.revision) == after
    assert amended.reason is (
        StopReason.MANUAL if amended.state is DestinationState.DISABLED else None
    )
    assert amended.detail == (
        "by ana (reason: Duplicate tickets), until someone enables it" if STOP in asked else None
    )
    if ANEW in asked:
        assert (amended.settings, amended.secrets) == ({"timeout": "8s"}, b"other")
    assert await office.load() == amended


async def test_what_comes_while_it_is_disabled_waits_and_is_sent_when_it_goes_on(office):
    await office.make()
    await office.offer()
    disabled = await office.do(disable_destination)
    assert (disabled.is_served, disabled.is_routed) == (False, True)
    await office.offer()
    resumed = await office.do(resume_destination)
    assert resumed.is_served
    assert len(await office.queue.claim("soc", 10, office.clock.now())) == 2


async def test_what_was_on_hold_is_tried_again_after_a_change(office, database):
    await office.make()
    for name in ("soc", "desk"):
        await office.offer(name, "on_hold")
    await office.do(change_destination)
    assert [state for state, _ in await office.states()] == ["pending", "on_hold"]
    assert await database.write(requeue_on_hold, office.clock.now()) == 1
    assert [state for state, _ in await office.states()] == ["pending", "pending"]


async def test_what_waits_for_its_retry_is_due_when_a_node_is_restarted_for_development(
    office, database
):
    await office.make()
    await office.offer()
    await database.write(
        lambda connection: connection.execute(
            update(deliveries).values(due_at=office.clock.now() + timedelta(hours=1))
        )
    )
    now = office.clock.now()
    assert await office.queue.claim("soc", 10, now) == []
    assert await database.write(requeue_pending, now) == 1
    assert len(await office.queue.claim("soc", 10, now)) == 1


# Deleting


async def test_what_waits_for_a_deleted_destination_is_dead_with_the_reason(office, database):
    await office.make()
    for state in ("delivered", "dead", "on_hold", "pending"):
        await office.offer(state=state)
    await office.do(delete_destination)
    buried = ("dead", "its destination was deleted")
    assert await office.states() == [("delivered", None), ("dead", None), buried, buried]
    assert await database.read(load_destinations) == []
    found = await office.load()
    assert (found.state, found.secrets, found.is_routed) == (DestinationState.DELETED, None, False)


async def test_what_was_under_way_is_buried_once_it_is_given_back(office, database):
    await office.make()
    await office.offer()
    claims = await office.queue.claim("soc", 1, office.clock.now())
    await office.do(delete_destination)
    assert await office.states() == [("pending", None)]
    await office.queue.release(claims, office.clock.now())
    assert await database.write(expire_deliveries, office.clock.now()) == 1
    assert await office.states() == [("dead", "its destination was deleted")]
