"""A real brute force against sshd: synced, enriched, investigated, and found again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import aiohttp
import pytest

from crowdsec_server import LocalApi, sshd_log
from full_run import postgresql_in_full

from .service import Receiver, Service, until

ATTACKER = {"kind": "ip", "value": "203.0.113.7"}
QUERY = {"query": "investigate incident 1"}
SCOPES = [f"{name}:read" for name in ("incidents", "investigations", "search", "graph")]
UNDER_WAY = ("queued", "running")
ENRICHED = "enrichments-of"


class Analyst:
    """Someone who works with a service over HTTP."""

    def __init__(self, http: aiohttp.ClientSession) -> None:
        self._http = http

    async def get(self, path: str) -> Any:
        async with self._http.get(f"/api/v1/{path}") as answer:
            return await answer.json() if "json" in answer.content_type else await answer.text()

    async def post(self, path: str, content: Any = None) -> Any:
        async with self._http.post(f"/api/v1/{path}", json=content) as answer:
            return await answer.json()

    async def wait_for(self, session_id: str) -> Any:
        """Return the session as it is when it has completed."""
        async with asyncio.timeout(60):
            path = f"sessions/{session_id}"  # of another process, which nothing else tells of
            while (session := await self.get(path))["status"] in UNDER_WAY:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        assert session["status"] == "completed", session["error"]
        return session

    async def steps(self, session_id: str) -> list[Any]:
        return (await self.get(f"investigations/{session_id}/steps?limit=200"))["steps"]


@pytest.fixture
async def detected(reading_it: Service, local_api: LocalApi, receiver: Receiver) -> Service:
    """A service that has read of one brute force, as incident 1."""
    await local_api.detect(sshd_log(ATTACKER["value"], ["root", "admin"] * 6))
    await reading_it.start()
    await until(lambda: receiver.numbers == {1})
    return reading_it


@pytest.fixture
async def analyst(detected: Service) -> AsyncIterator[Analyst]:
    key = await detected.make_key(*SCOPES, "investigations:write")
    headers = {"X-API-Key": key}
    async with aiohttp.ClientSession(detected.url, headers=headers, raise_for_status=True) as http:
        yield Analyst(http)


def cited(value: Any) -> Iterator[str]:
    """Yield every reference below a part of a report."""
    if isinstance(value, dict):
        yield from value.get("evidence", [])
    for part in value.values() if isinstance(value, dict) else value:
        if isinstance(part, dict | list):
            yield from cited(part)


@postgresql_in_full
@pytest.mark.full
async def test_a_brute_force_becomes_a_report_that_an_analyst_can_work_with(analyst):
    enriched = await analyst.post("incidents/1/enrich")
    assert {enrichment["difference"] for enrichment in enriched["enrichments"]} == {"new"}
    assert ATTACKER in [enrichment["entity"] for enrichment in enriched["enrichments"]]
    started = await analyst.post("investigations/start", QUERY)
    session = await analyst.wait_for(started["session_id"])
    report = await analyst.get(f"investigations/{session['id']}/report.json")
    assert report["incidents"] == [1]
    assert report["title"].endswith("crowdsecurity/ssh-bf")
    assert ATTACKER["value"] in " ".join(sentence["text"] for sentence in report["summary"])
    assert report["verdict"] in {"suspicious", "malicious"}
    assert (
        report["risk_score"]
        == sum(contribution["points"] for contribution in report["contributions"])
        >= 20
    )
    [decision] = [
        moment for moment in report["timeline"] if "ban of" in moment["statement"]["text"]
    ]
    assert (decision["source"], ATTACKER["value"] in decision["statement"]["text"]) == (
        "provider:edge",
        True,
    )
    assert report["actions"]
    assert report["techniques"] == ["T1110"]
    assert report["gaps"]
    assert "connected-to" in {relation["type"] for relation in report["relations"]}
    assert {entity["entity"]["value"] for entity in report["entities"]} == {
        *("bastion", ATTACKER["value"], "admin", "root")
    }
    steps = {f"step:{step['number']}" for step in await analyst.steps(session["id"])}
    assert set(cited(report)) <= steps | {"incident:1"}


@pytest.mark.full
async def test_what_was_found_is_found_again(analyst, detected):
    session_id = (await analyst.post("investigations/start", QUERY))["session_id"]
    await analyst.wait_for(session_id)
    asked = {f"session:{session_id}#{step['number']}" for step in await analyst.steps(session_id)}
    found = await analyst.get(f"search?q={ATTACKER['value']}")
    assert {(result["kind"], result["id"]) for result in found["results"]} == {
        ("incident", "1"),
        ("session", session_id),
    }
    graph = await analyst.get(f"graph/entity/{ATTACKER['value']}")
    known = {(edge["type"], edge["source"]["kind"]): edge["known_from"] for edge in graph["edges"]}
    assert known["involves", "incident"] == ["incident:1"]
    [found_by] = known["found", "session"]
    assert found_by.partition("#")[0] == f"session:{session_id}"
    assert set(known["connected-to", "ip"]) <= asked
    path = await analyst.get(f"graph/path?from={session_id}&to={ATTACKER['value']}")
    assert path["nodes"] == [{"kind": "session", "value": session_id}, ATTACKER]
    assert await detected.command("investigations", "replay", session_id) == (0, "identical\n", "")


@pytest.mark.full
async def test_every_form_of_the_report_tells_the_same(analyst):
    session_id = (await analyst.post("investigations/start", QUERY))["session_id"]
    session = await analyst.wait_for(session_id)
    place = f"investigations/{session_id}"
    report = await analyst.get(f"{place}/report.json")
    page = await analyst.get(f"{place}/report.html")
    assert await analyst.get(f"{place}/report.md") == session["report"]
    for told in (page, session["report"]):
        assert all(finding["title"] in told for finding in report["findings"])
    assert page.count("<svg") >= 3  # the score, the timeline and the graph
    for part in ("findings", "entities", "timeline"):
        assert (await analyst.get(f"{place}/{part}"))[part] == report[part]


@pytest.mark.full
async def test_a_follow_up_goes_on_and_says_what_is_different(analyst):
    session_id = (await analyst.post("investigations/start", QUERY))["session_id"]
    await analyst.wait_for(session_id)
    await analyst.post(f"sessions/{session_id}/message", {"message": "ignore user root"})
    session = await analyst.wait_for(session_id)
    entities = (await analyst.get(f"investigations/{session_id}/entities"))["entities"]
    assert session["run"] == 2
    assert "root" not in {entity["entity"]["value"] for entity in entities}
    assert "root" in session["messages"][-1]["text"]


@pytest.mark.full
async def test_an_investigation_survives_its_node_and_asks_nothing_twice(
    detected, analyst, local_api
):
    local_api.pause()  # so that questions for events wait
    session_id = (await analyst.post("investigations/start", QUERY))["session_id"]
    async with asyncio.timeout(30):
        while ENRICHED not in {step["kind"] for step in await analyst.steps(session_id)}:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    before = await analyst.steps(session_id)
    assert (await analyst.get(f"sessions/{session_id}"))["status"] == "running"
    await detected.kill()
    local_api.resume()
    await detected.start()
    session = await analyst.wait_for(session_id)
    assert session["run"] == 1
    steps = await analyst.steps(session_id)
    asked = [(step["asked_of"], json.dumps(step["question"])) for step in steps if step["question"]]
    assert [step for step in steps if step in before] == before
    assert len(set(asked)) == len(asked)
    assert "provider:edge" in {source for source, _ in asked}
    assert await detected.command("investigations", "replay", session_id) == (0, "identical\n", "")
