"""Changes of a ticket and of its incident, in any order and with crashes: they never chase each
other.
"""

from __future__ import annotations

from functools import partial
from random import Random

import pytest

import tocsin_templates
from incident_rows import add_incidents
from tocsin import ChangeType, RemoteStatus
from tocsin.accounting import trace_incident
from tocsin.delivery.rendering import Renderer
from tocsin.delivery.routing.router import Routes, route_events
from tocsin.delivery.sending.attempts import AttemptRunner
from tocsin.delivery.statuses.reader import make_status_reader
from tocsin.events import emit_events
from tocsin.incidents import apply_resolution, load_history
from tocsin.model import IncidentDisposition

from .conftest import add, alert, destination
from .test_resolutions import MAPPING, URL, Tickets
from .test_statuses import Board, make_board

CLOSE_WHEN = "event_type == 'incident-changed' and (data.disposition or data.status == 'Closed')"
STEPS, ROUNDS = 60, 8
SHIPPED = Renderer(list(tocsin_templates.tocsin_template_paths()))


class Desk(Board):
    """One ticket, which people and Tocsin close and people reopen."""

    def __init__(self, settings, tools) -> None:
        super().__init__(settings, tools)
        self.resolution: str | None = None
        self.notes: list[str] = []
        self.closures = self.decisions = self.reopenings = 0
        """How often Tocsin closed it, and people closed and reopened it."""

    def decide(self, resolution: str) -> None:
        if self.resolution != resolution:
            self.decisions += 1
            self.resolution = resolution

    def reopen(self) -> None:
        self.reopenings += self.resolution is not None
        self.resolution = None

    @property
    def status(self) -> RemoteStatus:
        if self.resolution is None:
            return RemoteStatus(status="To Do", is_open=True)
        return RemoteStatus(status="Done", is_open=False, resolution=self.resolution)

    async def read_statuses(self, identifiers):
        return dict.fromkeys(identifiers, self.status)

    async def find(self, key):
        return "A"

    async def create(self, key, body, observables):
        return "A", False

    async def is_open(self, identifier):
        return self.resolution is None

    async def list_notes(self, identifier):
        return self.notes

    async def add_note(self, identifier, title, text):
        self.notes.append(text)

    async def close(self, identifier, reason):
        self.closures += 1
        self.resolution = "Closed by Tocsin"


class Scene(Tickets):
    """Everything that happens to incident 1 and its ticket, one step after the other."""

    async def change_at_siem(self, status: str) -> None:
        data = {"incident_number": 1, "severity": "High", "provider": "edge", "status": status}
        changes = {"status": {"from": "New", "to": status}}
        event = alert(1)
        shown = {"title": "Port scan", "url": URL, "disposition": None, "changes": changes}
        event = type(event)(
            id=event.id,
            event_type=ChangeType.INCIDENT_CHANGED,
            timestamp=event.timestamp,
            data=data | shown,
            subject=event.subject,
            context=event.context,
        )
        await self.database.write(emit_events, [event])

    async def work(self, *, crashes: bool = False) -> int:
        """Route events and attempt one delivery, if there is one; return how many were attempted.

        A node that crashes stores no result.
        """
        now = self.clock.now()
        await route_events(self.database, self.queue.queue, Routes(), 10, now)
        claims = await self.queue.claim(1, in_order=True, tenant_key=self.board.tenant_key)
        for claimed in claims:
            result = await AttemptRunner(self.board, SHIPPED).make(claimed)
            assert result.state == "delivered", result.reason
            if not crashes:
                await self.queue.queue.settle([result])
        self.clock.advance(minutes=3)
        return len(claims)

    async def look(self, *, crashes: bool = False) -> None:
        """Read the ticket; a node that crashes applies nothing."""
        self.clock.advance(days=1)
        await self.reader.read_next()
        if not crashes:
            await self.reader.resolve()

    async def count(self) -> tuple[int, int, int]:
        """Return how often Tocsin set and removed a disposition for the ticket, and closed it."""
        changes = await self.database.read(load_history, 1)
        given = [
            member["to"]
            for change in changes
            if change["by"] == "soc"
            for member in change["members"]
            if member["name"] == "disposition"
        ]
        return len(given) - given.count(None), given.count(None), self.board.closures

    async def do_anything(self, random: Random) -> None:
        crashes = random.random() < 0.3
        dispositions = [None, *IncidentDisposition]
        match random.randrange(9):
            case 0 | 1:
                self.board.decide(random.choice(["Fixed", "Won't Do"]))
            case 2:
                self.board.reopen()
            case 3:
                await self.classify(random.choice(dispositions))
            case 4:
                await self.change_at_siem(random.choice(["Active", "Closed"]))
            case 5 | 6:
                await self.work(crashes=crashes)
            case _:
                await self.look(crashes=crashes)


@pytest.fixture
async def scene(database, clock) -> Scene:
    settings = {"follow_changes": True, "close_when": CLOSE_WHEN, "template": "github"}
    await add(database, destination("soc", settings=settings))
    await database.write(add_incidents, 1)
    board = make_board(clock, Desk, **settings)
    board.settings = board.settings.model_copy(
        update={"resolutions": MAPPING | {"Closed by Tocsin": "duplicate"}}
    )
    apply = partial(apply_resolution, public_url=URL)
    made = Scene(database, clock, board, make_status_reader(board, database, 1, apply))
    await database.write(emit_events, [alert(1)])
    await made.work()
    await made.look()
    return made


async def test_the_trace_names_the_ticket_that_a_change_closed(scene):
    await scene.change_at_siem("Closed")
    await scene.work()
    [change] = (await scene.database.read(trace_incident, 1))["changes"]
    assert change["members"] == [{"name": "status", "from": "New", "to": "Closed"}]
    assert change["objects"] == [{"destination": "soc", "id": "A", "closed": True}]


SEEDS = [2, 13, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(40))]


@pytest.mark.parametrize("seed", SEEDS)
async def test_changes_of_a_ticket_and_its_incident_never_chase_each_other(scene, seed):
    random = Random(seed)
    for _ in range(STEPS):
        await scene.do_anything(random)
        given, removed, _ = await scene.count()
        assert given <= scene.board.decisions, "each decision classifies once at most"
        assert removed <= scene.board.reopenings
    before = None
    for _ in range(ROUNDS):
        while await scene.work():
            pass
        await scene.look()
        after = await scene.count()
        if after == before:
            break
        before = after
    else:
        pytest.fail("the two sides still change each other")
    disposition, source = await scene.find()
    if source == "ticket":
        assert disposition == MAPPING.get(scene.board.resolution, "true-positive")
