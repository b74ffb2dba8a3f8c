"""Decisions in tickets that become dispositions of incidents, and those of Tocsin that do not."""

from __future__ import annotations

from functools import partial

import pytest
from sqlalchemy import select

from incident_rows import add_incidents
from tocsin.channels import find_unmapped
from tocsin.delivery.queue.queue import DeliveryQueue
from tocsin.delivery.statuses.reader import make_status_reader
from tocsin.incidents import Author, TriageUpdate, apply_resolution, load_history, update_triage
from tocsin.incidents.triage import load_triage
from tocsin.incidents.triage_changes import lock_incident
from tocsin.model import DispositionSource, IncidentDisposition
from tocsin.store.tables import audit, remote_objects, status_readers

from .conftest import add, alert, destination
from .test_queue import Queue
from .test_statuses import DONE, OPEN, Board, make_board

MAPPING = {"Done": "true-positive", "Won't Do": "false-positive", "Dropped": "none"}
URL = "https://tocsin.example.com"


class Tickets:
    """Incident 1 with its ticket, read by a destination that maps resolutions."""

    def __init__(self, database, clock, board: Board, reader) -> None:
        self.database, self.clock, self.board, self.reader = database, clock, board, reader
        self.queue = Queue(DeliveryQueue(database, 1), database, clock)

    async def deliver(self, closed: tuple[str, ...] = ()) -> None:
        """Deliver an event that creates or closes the ticket."""
        claimed = await self.begin()
        await self.end(claimed, closed)

    async def begin(self):
        await self.queue.offer(alert(1))
        [claimed] = await self.queue.claim(tenant_key=self.board.tenant_key)
        return claimed

    async def end(self, claimed, closed: tuple[str, ...] = ()) -> None:
        attempt = self.queue.attempt(claimed, remote_id="A", closed=closed)
        await self.queue.queue.settle([attempt])

    async def read(self, status) -> None:
        """Read the ticket, which has this status now, when it is due."""
        self.board.statuses = {} if status is None else {"A": status}
        self.clock.advance(days=1)
        await self.reader.read_next()
        await self.reader.resolve()

    async def classify(self, disposition: IncidentDisposition | None) -> None:
        def change(connection) -> None:
            lock_incident(connection, 1)
            author = Author("ana", "admin:ana", DispositionSource.PERSON)
            update = TriageUpdate(disposition=disposition)
            update_triage(connection, 1, update, author, self.clock.now(), public_url=URL)

        await self.database.write(change)

    async def find(self) -> tuple[str | None, str | None]:
        """Return the disposition and its source."""
        found = (await self.database.read(load_triage, [1])).get(1)
        return (found["disposition"], found["disposition_source"]) if found else (None, None)

    async def count_changes(self) -> int:
        return len(await self.database.read(load_history, 1))


@pytest.fixture
async def tickets(database, clock) -> Tickets:
    await add(database, destination("soc"))
    await database.write(add_incidents, 1)
    board = make_board(clock)
    board.settings = board.settings.model_copy(update={"resolutions": MAPPING})
    apply = partial(apply_resolution, public_url=URL)
    made = Tickets(database, clock, board, make_status_reader(board, database, 1, apply))
    await made.deliver()
    await made.read(OPEN)
    return made


def closed(status="Done", resolution=None):
    from dataclasses import replace

    return replace(DONE, status=status, resolution=resolution)


async def test_a_closed_ticket_classifies_its_incident_with_provenance(tickets, database):
    await tickets.read(OPEN)
    assert await tickets.find() == (None, None)
    await tickets.read(DONE)
    found = (await database.read(load_triage, [1]))[1]
    assert (found["disposition"], found["disposition_source"]) == ("false-positive", "ticket")
    assert (found["disposition_by"], found["disposition_reason"]) == ("soc", "A: Done / Won't Do")
    [change] = await database.read(load_history, 1)
    assert change["actor"] == "destination:soc"
    [entry] = await database.read(lambda c: c.execute(select(audit)).mappings().all())
    assert (entry["actor"], entry["target"]) == ("destination:soc", "incident:1")
    for _ in range(3):
        await tickets.read(DONE)
    assert await tickets.count_changes() == 1, "one decision changes it once"


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (closed("Done", "Fixed"), "true-positive"),
        (closed("Done", "Won't Do"), "false-positive"),
        (closed("Dropped"), None),
        (closed("Unmapped"), None),
        (None, None),
    ],
)
async def test_a_resolution_takes_precedence_over_the_status(tickets, status, expected):
    await tickets.read(status)
    assert (await tickets.find())[0] == expected


async def test_a_ticket_changes_its_own_decision_and_takes_it_back(tickets):
    await tickets.read(DONE)
    await tickets.read(closed("Done", "Fixed"))
    assert await tickets.find() == ("true-positive", "ticket")
    await tickets.read(OPEN)
    assert await tickets.find() == (None, None)
    await tickets.read(DONE)
    assert await tickets.find() == ("false-positive", "ticket")


async def test_a_ticket_never_overrides_people(tickets):
    await tickets.classify(IncidentDisposition.DUPLICATE)
    for status in (DONE, OPEN, DONE):
        await tickets.read(status)
        assert await tickets.find() == ("duplicate", "person")


async def test_what_tocsin_closed_is_no_decision(tickets):
    await tickets.read(OPEN)
    await tickets.deliver(closed=("A",))
    await tickets.read(DONE)
    assert await tickets.find() == (None, None)
    await tickets.read(OPEN)
    assert await tickets.find() == (None, None)
    await tickets.read(DONE)
    assert await tickets.find() == ("false-positive", "ticket"), "people closed it afterwards"


async def test_what_was_closed_before_resolutions_were_set_is_no_decision(tickets, database):
    def forget(connection) -> None:
        connection.execute(remote_objects.update().values(status_read_at=None, status=None))
        connection.execute(status_readers.update().values(resolving_since=None))

    await database.write(forget)
    await tickets.read(DONE)
    assert await tickets.find() == (None, None)


async def test_a_new_ticket_that_is_closed_before_its_first_read_counts(tickets, database):
    await tickets.queue.offer(alert(1))
    [claimed] = await tickets.queue.claim(tenant_key=tickets.board.tenant_key)
    await tickets.queue.queue.settle([tickets.queue.attempt(claimed, remote_id="B")])
    tickets.board.statuses = {"B": DONE}
    tickets.clock.advance(seconds=1)
    await tickets.reader.read_next()
    await tickets.reader.resolve()
    assert await tickets.find() == ("false-positive", "ticket")


async def test_an_attempt_under_way_is_waited_for(tickets):
    """It may have closed the ticket, which its result tells."""
    claimed = await tickets.begin()
    await tickets.read(DONE)
    assert await tickets.find() == (None, None)
    await tickets.end(claimed, closed=("A",))
    await tickets.reader.resolve()
    assert await tickets.find() == (None, None)


async def test_a_ticket_that_was_closed_during_another_delivery_counts(tickets):
    claimed = await tickets.begin()
    await tickets.read(DONE)
    await tickets.end(claimed)
    await tickets.reader.resolve()
    assert await tickets.find() == ("false-positive", "ticket")


def test_an_incomplete_mapping_is_a_problem(clock):
    board = make_board(clock)
    settings = board.settings.model_copy(update={"resolutions": {"Done": "none"}})
    [problem] = find_unmapped(settings, ["Done", "Dropped"])
    assert problem.startswith("resolutions: add an entry for the closed status 'Dropped'")
    assert list(find_unmapped(settings, ["Done"])) == []
    unread = settings.model_copy(update={"status_interval": None})
    assert "status_interval" in find_unmapped(unread, [])[0]
    unset = settings.model_copy(update={"resolutions": {}})
    assert list(find_unmapped(unset, ["Done"])) == []
