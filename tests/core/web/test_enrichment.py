"""Enriching incidents over HTTP: what is asked, what is answered, and how much at once."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import pytest
from aiohttp.test_utils import TestClient, TestServer

from api_server import problem
from incident_rows import add_incidents
from tocsin import Broken, Disposition, Enricher, Enrichment, EntityKind, Marking
from tocsin.credentials import Scope
from tocsin.enrichment import Enrichers, IncidentEnricher
from tocsin.observables import Environment
from tocsin.testing import loopback_client, make_tools
from tocsin.web import make_app
from tocsin.web.context import MAX_CONCURRENT_ENRICHMENTS
from tocsin.web.routes import enrichment
from tocsin.web.schemas.enrichment import IncidentEnrichment

OUTSIDE, INSIDE, DOMAIN = "198.51.100.7", "10.0.0.7", "evil.example"
ENTITIES = [("ip", OUTSIDE), ("ip", INSIDE), ("domain", DOMAIN), ("user", "bob")]

on_one_database = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


class Source(Enricher):
    """Knows addresses, cannot be asked for domains, and answers when it may."""

    name = "source"
    kinds = frozenset({EntityKind.IP, EntityKind.DOMAIN})
    online = True

    def __init__(self, settings, tools) -> None:
        super().__init__(settings, tools)
        self.summary = "Seen."
        self.asked = asyncio.Semaphore(0)
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def enrich(self, entities):
        self.asked.release()
        await self.may_answer.wait()
        if entities[0].kind is EntityKind.DOMAIN:
            raise Broken("it is away")
        suspicious = Disposition.SUSPICIOUS
        return [
            Enrichment(entity=entity, summary=self.summary, disposition=suspicious)
            for entity in entities
        ]


@pytest.fixture
def source(clock) -> Source:
    settings = Source.Settings(plugin="test", cache_for="0s", requests_per_minute=1000)
    return Source(settings, make_tools(loopback_client(), clock=clock))


@pytest.fixture
async def numbers(api) -> list[int]:
    """One incident with some of everything, and five with an address of their own."""
    write = api.services.database.write
    made = await write(add_incidents, entities=ENTITIES)
    for last in range(5):
        made += await write(add_incidents, entities=[("ip", f"203.0.113.{last}")])
    return made


@pytest.fixture
async def enrich(api, source, numbers):
    """Have an incident enriched by a node that has the source."""
    headers = {"X-API-Key": await api.key(Scope.INVESTIGATIONS_WRITE)}
    async with node(api, source) as client:
        yield lambda number: client.post(f"/api/v1/incidents/{number}/enrich", headers=headers)


@asynccontextmanager
async def node(api, source):
    database, clock = api.services.database, api.services.clock
    markings = {"sensors": Marking()}
    enrichers = Enrichers({"source": source}, Environment(), database, clock, markings=markings)
    enriching = IncidentEnricher(enrichers, database, markings)
    async with AsyncExitStack() as stack:
        services = replace(api.services, enricher=enriching)
        yield await stack.enter_async_context(TestClient(TestServer(make_app(services))))


async def answer(response) -> dict:
    assert response.status == 200, await response.text()
    content = await response.json()
    IncidentEnrichment.model_validate(content)
    return content


async def test_what_is_known_what_was_not_asked_and_what_failed_is_answered(enrich):
    content = await answer(await enrich(1))
    assert (content["incident_number"], content["changed"], content["passed_over"]) == (1, 1, 0)
    [known] = content["enrichments"]
    assert known["entity"] == {"kind": "ip", "value": OUTSIDE}
    assert (known["enricher"], known["difference"]) == ("source", "new")
    assert known["enrichment"]["summary"] == "Seen."
    assert known["enrichment"]["disposition"] == "suspicious"
    [skipped] = content["skipped"]
    assert (skipped["entity"]["value"], skipped["outcome"]) == (INSIDE, "refused")
    assert "internal" in skipped["reason"]
    [failed] = content["failed"]
    assert (failed["entity"]["value"], failed["outcome"]) == (DOMAIN, "unavailable")
    assert failed["reason"] == "it is away"


async def test_a_second_time_says_what_is_the_same_and_what_is_different(enrich, source):
    await answer(await enrich(1))
    again = await answer(await enrich(1))
    assert again["changed"] == 0
    assert [item["difference"] for item in again["enrichments"]] == ["same"]
    source.summary = "Seen again."
    third = await answer(await enrich(1))
    assert third["changed"] == 1
    assert [item["difference"] for item in third["enrichments"]] == ["different"]


@on_one_database
async def test_what_was_said_is_part_of_the_context_of_an_incident(api, source, enrich):
    await answer(await enrich(1))
    headers = {"X-API-Key": await api.key(Scope.INCIDENTS_READ)}
    async with node(api, source) as client:
        response = await client.get("/api/v1/incidents/1/context", headers=headers)
        content = await response.json()
    of = {each["value"]: each["enrichments"] for each in content["entities"]}
    [known] = of.pop(OUTSIDE)
    assert (known["enricher"], known["enrichment"]["summary"]) == ("source", "Seen.")
    assert not any(of.values())


@on_one_database
async def test_an_incident_that_is_not_there_is_not_found(enrich):
    for number in ("7", "0", "-1", "x", "01", "9" * 18, "9" * 30):
        await problem(await enrich(number), 404)


@on_one_database
async def test_without_enrichers_nothing_is_known(analyst, numbers):
    content = await analyst.ask("POST", f"/api/v1/incidents/{numbers[0]}/enrich")
    assert (content["enrichments"], content["skipped"], content["failed"]) == ([], [], [])


@on_one_database
async def test_beyond_four_at_once_a_node_enriches_nothing(enrich, source, numbers):
    source.may_answer.clear()
    first = [
        asyncio.create_task(enrich(number)) for number in numbers[-MAX_CONCURRENT_ENRICHMENTS:]
    ]
    for _ in first:
        await source.asked.acquire()
    one_more = await enrich(numbers[0])
    document = await problem(one_more, 503)
    assert "4 incidents are already being enriched" in document["detail"]
    assert int(one_more.headers["Retry-After"]) > 0
    source.may_answer.set()
    for response in await asyncio.gather(*first):
        await answer(response)
    await answer(await enrich(numbers[0]))


@on_one_database
async def test_what_takes_too_long_is_given_up_and_leaves_its_place(enrich, source, monkeypatch):
    monkeypatch.setattr(enrichment, "LONGEST", 0.05)
    source.may_answer.clear()
    for _ in range(MAX_CONCURRENT_ENRICHMENTS + 1):
        response = await enrich(1)
        document = await problem(response, 503)
        assert "was cancelled" in document["detail"]
        assert int(response.headers["Retry-After"]) > 0
    monkeypatch.undo()
    source.may_answer.set()
    assert (await answer(await enrich(1)))["changed"] == 1
