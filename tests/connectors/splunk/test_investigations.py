"""Investigations of Enterprise Security 8."""

from __future__ import annotations

from typing import Any

import pytest
from aiohttp import web

from tocsin import Broken, Entity, EntityKind, IncidentStatus, Severity
from tocsin.testing import Siem, open_provider
from tocsin_connectors.siem.splunk import Splunk
from tocsin_connectors.siem.splunk.investigations import INVESTIGATIONS, PREFIX

from .simulator import TOKEN, FindingsSimulator

FINDING = "0b5e2c7a@@notable@@time1795165200"
SEARCH = "Access - Stolen Credentials - Rule"


class InvestigationsSimulator(FindingsSimulator):
    """A search head with investigations, which it lists by creation time, oldest first."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.investigations: list[dict[str, Any]] = []
        self.notes: list[dict[str, Any]] = []
        self.is_broken = False

    def routes(self) -> list[web.RouteDef]:
        notes = INVESTIGATIONS + "/{id}/notes"
        return [
            web.get(INVESTIGATIONS, self.list_investigations),
            web.post(INVESTIGATIONS + "/{id}", self.change),
            web.get(notes, self.show_notes),
            web.post(notes, self.write_note),
            *(route for route in super().routes() if not route.path.endswith("/notes")),
        ]

    async def list_investigations(self, request: web.Request) -> web.Response:
        if self.is_broken:
            return self.json({"messages": []})
        asked = request.query
        if "ids" in asked:
            named = {one["investigation_guid"]: one for one in self.investigations}
            return self.json({"items": [named[asked["ids"]]] if asked["ids"] in named else []})
        start, end = float(asked["create_time_min"]), float(asked["create_time_max"])
        found = [one for one in self.investigations if start <= one["create_time"] <= end]
        first = int(asked["offset"])
        return self.json({"items": found[first : first + int(asked["limit"])]})

    async def change(self, request: web.Request) -> web.Response:
        for one in self.investigations:
            if one["investigation_guid"] == request.match_info["id"]:
                one.update(await request.json())
        return self.json({})

    async def show_notes(self, request: web.Request) -> web.Response:
        return self.json({"items": self.notes})

    async def write_note(self, request: web.Request) -> web.Response:
        self.notes.append(await request.json())
        return self.json({}, 201)

    def put(self, name: str, **members: Any) -> None:
        now = self.siem.now().timestamp()
        record = {
            "investigation_guid": name,
            "investigation_id": f"ES-{name}",
            "name": "Stolen credentials",
            "description": "Two findings of one account",
            "status": "2",
            "urgency": "high",
            "create_time": now,
            "consolidated_findings": {
                "event_id": FINDING,
                "search_name": SEARCH,
                "src": "203.0.113.7",
                "user": "ann",
            },
        }
        self.investigations.append({**record, **members})


@pytest.fixture
async def simulator(clock):
    async with InvestigationsSimulator(Siem(clock)) as simulator:
        yield simulator


@pytest.fixture
async def provider(simulator, clock):
    settings = {"url": simulator.url, "token": TOKEN, "investigations": True}
    async with open_provider(Splunk, clock=clock, **settings) as provider:
        yield provider


async def read(provider, position=None):
    now = provider.tools.clock.now()
    pages = [page async for page in provider.read("investigations", position, now)]
    found = [incident for page in pages for incident in page.incidents]
    return found, pages[-1].next_position if pages else position


async def test_investigation_becomes_incident(simulator, provider, clock):
    simulator.put("7")
    clock.advance(minutes=5)
    [found], _ = await read(provider)
    assert (found.external_id, found.external_number) == (f"{PREFIX}7", "ES-7")
    assert (found.title, found.description) == ("Stolen credentials", "Two findings of one account")
    assert (found.severity, found.status) == (Severity.HIGH, IncidentStatus.ACTIVE)
    assert set(found.entities) == {
        Entity(EntityKind.IP, "203.0.113.7"),
        Entity(EntityKind.USER, "ann"),
    }
    assert [(alert.external_id, alert.rule) for alert in found.alerts] == [(FINDING, SEARCH)]
    assert await provider.incident(f"{PREFIX}7") == found
    assert await provider.incident(f"{PREFIX}8") is None


@pytest.mark.parametrize(("searches", "rule"), [([SEARCH, SEARCH], SEARCH), ([SEARCH, "B"], None)])
async def test_findings_of_several_searches_have_no_rule(simulator, provider, searches, rule):
    findings = {"event_id": [FINDING, "other"], "search_name": searches}
    simulator.put("7", consolidated_findings=findings)
    found = await provider.incident(f"{PREFIX}7")
    assert [alert.rule for alert in found.alerts] == [rule, rule]


async def test_changes_of_older_investigations_are_read(simulator, provider, clock):
    for number in range(120):  # more than a page
        simulator.put(str(number))
    clock.advance(minutes=5)
    found, position = await read(provider)
    assert len({incident.external_id for incident in found}) == 120
    clock.advance(days=3)
    simulator.investigations[5] |= {"status": "5", "update_time": clock.now().timestamp()}
    clock.advance(minutes=5)
    found, _ = await read(provider, position)
    assert {(one.external_id, one.status) for one in found} == {
        (f"{PREFIX}5", IncidentStatus.CLOSED)
    }


async def test_response_without_a_list_is_not_an_empty_one(simulator, provider, clock):
    simulator.is_broken = True
    clock.advance(minutes=5)
    with pytest.raises(Broken, match="without a list"):
        await read(provider)


async def test_comment_and_status_are_written_once(simulator, provider):
    simulator.put("7")
    for _ in range(2):
        await provider.comment(f"{PREFIX}7", "Benign.", "k1")
        await provider.set_status(f"{PREFIX}7", IncidentStatus.CLOSED)
    [note] = simulator.notes
    assert "Benign." in note["content"]
    assert simulator.investigations[0]["status"] == "5"


async def test_investigations_are_not_read_by_default(simulator, clock):
    async with open_provider(Splunk, clock=clock, url=simulator.url, token=TOKEN) as provider:
        assert provider.streams() == ("new", "reviewed")
