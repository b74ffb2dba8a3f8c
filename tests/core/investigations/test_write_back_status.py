"""Status of incidents at the SIEM after a write-back."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
import structlog
from sqlalchemy import select

from tocsin import (
    Health,
    Incident,
    IncidentStatus,
    Page,
    Provider,
    Refused,
    Severity,
    Tools,
    TryLater,
)
from tocsin.incidents import RETRY_DELAYS
from tocsin.incidents.coverage.positions import StreamKey
from tocsin.incidents.storage.alerts import IncidentPolicy
from tocsin.incidents.storage.store import store_page
from tocsin.investigations import create_session
from tocsin.investigations.write_backs import WriteBackWorker, list_write_backs, plan_write_backs
from tocsin.investigations.write_backs.worker import LEASE
from tocsin.model import Persona
from tocsin.store.tables import events, incidents

KEY = StreamKey("sensors", "changed")


class Siem(Provider):
    """Has one incident, and keeps what is written to it."""

    def __init__(self, settings, tools) -> None:
        super().__init__(settings, tools)
        self.now = tools.clock.now()
        self.found: Incident | None = Incident(
            external_id="7", title="Beaconing", severity=Severity.HIGH, occurred_at=self.now
        )
        self.comments: dict[str, str] = {}
        self.statuses: list[IncidentStatus] = []
        self.errors: list[Exception] = []
        self.gate: asyncio.Event | None = None
        self.entered = asyncio.Event()

    async def check(self):
        return Health(detail="")

    async def read(self, stream, position, until):
        yield Page(next_position={}, incidents=(self.found,))

    async def incident(self, external_id):
        return self.found

    async def comment(self, external_id, text, key):
        self.comments.setdefault(key, text)

    async def set_status(self, external_id, status):
        self.entered.set()
        if self.gate is not None:
            await self.gate.wait()
        if self.errors:
            raise self.errors.pop(0)
        self.statuses.append(status)
        self.found = replace(self.found, status=status)


class Forgetful(Siem):
    """Cannot be asked for one incident."""

    incident = Provider.incident


class Wordless(Siem):
    """Takes no comments."""

    comment = Provider.comment


@pytest.fixture
def make_siem(clock):
    def make(kind=Siem, status="active", *, write_back=True) -> Siem:
        tools = Tools(name="sensors", http=None, clock=clock, log=structlog.get_logger())
        given = {"plugin": "siem", "write_back": write_back, "write_back_status": status}
        return kind(kind.Settings(**given), tools)

    return make


@pytest.fixture
def siem(make_siem) -> Siem:
    return make_siem()


@pytest.fixture
def sync(database, clock):
    """Read a SIEM once, as the sync does."""
    revisions = iter(range(100))

    async def sync(siem) -> None:
        policy, revision = IncidentPolicy("https://tocsin.example.com"), next(revisions)
        async for page in siem.read("changed", None, clock.now()):
            members = {"revision": revision, "policy": policy, "now": clock.now()}
            await database.write(store_page, KEY, page, **members)

    return sync


@pytest.fixture
def plan(database, clock):
    """Plan a comment to the incident, and return what tells how the comment is."""

    async def plan():
        members = {"persona": Persona.ANALYST, "provider": None, "by": "ana", "now": clock.now()}
        session_id = await database.write(create_session, query="look", **members)
        about = {"session_id": session_id, "run": 1, "text": "It was nothing."}
        where = {"incidents": [(1, "sensors", "7")], "now": clock.now()}
        await database.write(plan_write_backs, **about, **where)

        async def told_of_it():
            return (await database.read(list_write_backs, session_id))[0]

        return told_of_it

    return plan


@pytest.fixture
def of(database, clock):
    """Return what writes to a SIEM."""
    return lambda siem: WriteBackWorker(database, clock, {"sensors": siem})


async def test_an_incident_that_is_new_is_taken_up(of, siem, sync, plan):
    await sync(siem)
    await plan()
    assert await of(siem).write_next("sensors")
    assert (len(siem.comments), siem.statuses) == (1, [IncidentStatus.ACTIVE])


async def test_where_no_comment_can_be_written_the_status_alone_is_set(of, make_siem, sync, plan):
    siem = make_siem(Wordless, write_back=False)
    siem.errors = [Refused("not this one")]
    await sync(siem)
    told = await plan()
    assert not await of(siem).write_next("sensors")
    assert (await told()).reason == "not this one"
    told = await plan()
    assert await of(siem).write_next("sensors")
    assert ((await told()).state, siem.statuses) == ("written", [IncidentStatus.ACTIVE])


async def test_nothing_is_set_unless_it_is_asked_for(of, make_siem, sync, plan):
    siem = make_siem(status=None)
    await sync(siem)
    await plan()
    assert await of(siem).write_next("sensors")
    assert (len(siem.comments), siem.statuses) == (1, [])


@pytest.mark.parametrize("status", [IncidentStatus.ACTIVE, IncidentStatus.CLOSED])
async def test_an_incident_that_somebody_works_on_is_left_alone(of, make_siem, sync, plan, status):
    siem = make_siem(Forgetful)
    siem.found = replace(siem.found, status=status)
    await sync(siem)
    await plan()
    assert await of(siem).write_next("sensors")
    assert (len(siem.comments), siem.statuses) == (1, [])


@pytest.mark.parametrize("gone", [True, False])
async def test_what_was_closed_since_it_was_read_is_not_opened_again(of, siem, sync, plan, gone):
    await sync(siem)
    await plan()
    siem.found = None if gone else replace(siem.found, status=IncidentStatus.CLOSED)
    assert await of(siem).write_next("sensors")
    assert (len(siem.comments), siem.statuses) == (1, [])


async def test_a_siem_that_cannot_be_asked_again_is_believed(of, make_siem, sync, plan):
    siem = make_siem(Forgetful)
    await sync(siem)
    await plan()
    assert await of(siem).write_next("sensors")
    assert siem.statuses == [IncidentStatus.ACTIVE]


async def test_a_kill_between_comment_and_status_repeats_both_and_doubles_neither(
    clock, of, siem, sync, plan
):
    await sync(siem)
    await plan()
    siem.gate = asyncio.Event()
    dying = asyncio.create_task(of(siem).write_next("sensors"))
    await siem.entered.wait()
    dying.cancel()
    await asyncio.wait([dying])
    siem.gate = None
    clock.advance(seconds=LEASE.total_seconds())
    assert await of(siem).write_next("sensors")
    assert (len(siem.comments), siem.statuses) == (1, [IncidentStatus.ACTIVE])


async def test_a_status_that_fails_is_tried_again(clock, of, siem, sync, plan):
    await sync(siem)
    told_of_it = await plan()
    siem.errors = [TryLater("it is away")]
    node = of(siem)
    assert not await node.write_next("sensors")
    row = await told_of_it()
    assert row.reason == "comment written, status not set; it is away"
    clock.advance(seconds=RETRY_DELAYS[0].total_seconds())
    assert await node.write_next("sensors")
    assert (len(siem.comments), siem.statuses) == (1, [IncidentStatus.ACTIVE])


async def test_a_status_that_is_refused_is_told(of, siem, sync, plan):
    await sync(siem)
    told_of_it = await plan()
    siem.errors = [Refused("it is locked")]
    assert not await of(siem).write_next("sensors")
    row = await told_of_it()
    words = "comment written, status not set; it is locked"
    assert (row.state, row.attempts, row.reason) == ("failed", 1, words)


async def test_what_was_written_back_is_read_as_a_change_and_nothing_follows(
    database, of, siem, sync, plan
):
    await sync(siem)
    told_of_it = await plan()
    node = of(siem)
    assert await node.write_next("sensors")
    written = await told_of_it()
    await sync(siem)
    assert await database.read(rows_of, incidents.c.status) == [IncidentStatus.ACTIVE]
    assert await database.read(rows_of, events.c.event_type) == ["incident-alert"]
    assert await told_of_it() == written
    assert not await node.write_next("sensors")
    assert siem.statuses == [IncidentStatus.ACTIVE]


def rows_of(connection, column) -> list:
    return list(connection.scalars(select(column)))
