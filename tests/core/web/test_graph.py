"""Reading the knowledge graph over HTTP."""

from __future__ import annotations

import json
from datetime import timedelta
from urllib.parse import quote

import pytest
import stix2

from api_callers import Caller
from api_server import problem
from graph_rows import DOMAIN, IP, USER, Graph, technique
from incident_rows import NOW
from report_samples import HOSTILE
from session_rows import add_session
from tocsin.credentials import Scope
from tocsin.events import Notifiers
from tocsin.knowledge import SearchIndexer
from tocsin.model import Node, RelationType
from tocsin.store.text import clean_text
from tocsin.web.schemas.graph import KINDS, GraphNeighborhood, GraphPath, GraphStatistics

GRAPH = "/api/v1/graph"
PATH = f"{GRAPH}/path"
STATS = f"{GRAPH}/stats"
EXPORT = f"{GRAPH}/export"
HOST = Node("host", "ws-1")
PAGE = Node("url", "https://bad.example/a/b?c=d%20e&f=/#g")
LATER = "2026-11-21T13:00:00Z"

on_one_database = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture
def graph(api) -> Graph:
    return Graph(api.services.database)


def path_of(value: str) -> str:
    return f"{GRAPH}/entity/{quote(value, safe='')}"


def shown(node: Node) -> dict[str, str]:
    return {"kind": node.kind, "value": node.value}


async def around(analyst, value: str, **query) -> list[tuple[str, str]]:
    """Return the nodes around an entity, itself the first."""
    answer = await analyst.read(path_of(value), **query)
    GraphNeighborhood.model_validate(answer)
    return [(node["kind"], node["value"]) for node in answer["nodes"]]


async def test_an_entity_is_shown_with_what_is_around_it_and_from_where_that_is_known(
    analyst, graph
):
    incident = await graph.add(IP)
    await graph.tell(IP, RelationType.CONNECTED_TO, DOMAIN, known_from="session:ses_1#12")
    answer = await analyst.read(path_of(IP.value))
    GraphNeighborhood.model_validate(answer)
    assert answer["entity"] == shown(IP)
    assert answer["nodes"][0] == {**shown(IP), "title": None, "severity": None}
    assert len(answer["nodes"]) == 3
    edges = {edge["type"]: edge for edge in answer["edges"]}
    assert edges["involves"]["known_from"] == [f"incident:{incident.value}"]
    assert edges["connected-to"]["source"] == shown(IP)
    assert edges["connected-to"]["target"] == shown(DOMAIN)
    assert edges["connected-to"]["known_from"] == ["session:ses_1#12"]
    assert edges["connected-to"]["first_seen"] == "2026-11-21T12:00:00.000Z"
    assert answer["complete"] is True


@pytest.mark.parametrize("may_read", [True, False])
async def test_incidents_are_described_to_those_who_may_read_them(api, graph, may_read):
    incident = await graph.add(IP)
    scopes = [Scope.GRAPH_READ, *([Scope.INCIDENTS_READ] if may_read else [])]
    caller = Caller(api, {"X-API-Key": await api.key(*scopes)})
    nodes = (await caller.read(path_of(IP.value)))["nodes"]
    [found] = [node for node in nodes if node["value"] == incident.value]
    assert (found["title"] is not None, found["severity"] is not None) == (may_read, may_read)


async def test_a_url_is_asked_for_with_its_slashes_encoded(analyst, graph):
    await graph.add(PAGE)
    assert (await around(analyst, PAGE.value))[0] == ("url", PAGE.value)
    await problem(await analyst.send("GET", f"{GRAPH}/entity/{quote(PAGE.value)}"), 404)


@on_one_database
async def test_values_of_any_script_and_of_any_sign_are_asked_for_as_they_are(analyst, graph):
    values = ["C:\\a b\\c.exe", "CORP\\ünï", "100%", "a+b", "?", "#", "%2F", "é/ж", "a;b"]
    await graph.add(*(Node("file", value) for value in values))
    for value in values:
        assert (await around(analyst, value, kind="file"))[0] == ("file", value)


@on_one_database
async def test_the_kind_is_that_of_which_the_value_is_known(api, analyst, graph):
    session_id = await api.services.database.write(add_session)
    incident = await graph.add(IP, USER, techniques=["T1059.001"])
    for kind, value in (
        ("ip", IP.value),
        ("user", USER.value),
        ("incident", incident.value),
        ("technique", "T1059.001"),
        ("session", session_id),
    ):
        assert (await around(analyst, value))[0] == (kind, value)


@on_one_database
async def test_a_value_of_two_kinds_is_asked_for_by_kind_in_any_case(analyst, graph):
    await graph.add(Node("user", "web"), Node("host", "web"))
    assert (await around(analyst, "web", kind="HOST"))[0] == ("host", "web")
    assert (await around(analyst, "web", kind="user"))[0] == ("user", "web")
    await problem(await analyst.send("GET", f"{path_of('web')}?kind=ip"), 404)


@on_one_database
async def test_depth_and_limit_bound_what_is_shown(analyst, graph):
    await graph.add(IP, DOMAIN)
    await graph.add(DOMAIN, HOST)
    assert ("host", HOST.value) not in await around(analyst, IP.value, depth=2)
    assert ("host", HOST.value) in await around(analyst, DOMAIN.value, depth=2)
    answer = await analyst.read(path_of(IP.value), depth=3, limit=2)
    assert (len(answer["nodes"]), answer["complete"]) == (2, False)
    assert len((await analyst.read(path_of(IP.value), limit=1))["nodes"]) == 1


@on_one_database
async def test_types_and_kinds_narrow_it_in_any_case(analyst, graph):
    incident = await graph.add(IP)
    await graph.tell(IP, RelationType.RESOLVES_TO, DOMAIN)
    await graph.tell(IP, RelationType.CONNECTED_TO, HOST)
    of = ("ip", IP.value)
    resolved = await around(analyst, IP.value, types="RESOLVES-TO")
    assert resolved == [of, ("domain", DOMAIN.value)]
    both = await around(analyst, IP.value, types="resolves-to,connected-to")
    assert set(both) == {of, ("domain", DOMAIN.value), ("host", HOST.value)}
    only = await around(analyst, IP.value, kinds="Incident")
    assert only == [of, ("incident", incident.value)]


@on_one_database
async def test_since_and_until_narrow_it_to_a_time(analyst, graph):
    await graph.tell(IP, RelationType.RESOLVES_TO, DOMAIN, at=NOW)
    await graph.tell(IP, RelationType.CONNECTED_TO, HOST, at=NOW + timedelta(hours=2))
    assert len(await around(analyst, IP.value)) == 3
    assert ("host", HOST.value) not in await around(analyst, IP.value, until=LATER)
    assert ("domain", DOMAIN.value) not in await around(analyst, IP.value, since=LATER)


UNKNOWN = ["198.51.100.1", "nothing", "4711", "9" * 18, "9" * 30, "9" * 5000, "a" * 3000]


async def test_what_nothing_is_known_of_is_not_found(analyst, graph):
    await graph.add(IP)
    for value in UNKNOWN:
        await problem(await analyst.send("GET", path_of(value)), 404)
        status = 404 if len(value) <= 2048 else 422
        await problem(await analyst.send("GET", EXPORT, params={"value": value}), status)
        for ends in ({"from": value, "to": IP.value}, {"from": IP.value, "to": value}):
            await problem(await analyst.send("GET", PATH, params=ends), status)


STRANGE = ["[", "http://[", "a@", "xn--", "..", "\u202e", "1.2.3.4.5", "::", "\t", "İ", "ß" * 99]


async def test_no_value_is_too_strange_to_be_looked_for(analyst):
    for value in STRANGE:
        for kind in KINDS:
            query = {"value": value, "kind": kind}
            assert (await analyst.send("GET", EXPORT, params=query)).status == 404, value
    for value in HOSTILE:
        query = {"value": clean_text(value, 1000)}
        assert (await analyst.send("GET", EXPORT, params=query)).status == 404, value


WRONG = {
    "depth=0": "depth",
    "depth=4": "depth",
    "limit=0": "limit",
    "limit=1001": "limit",
    "kind=planet": "kind",
    "types=knows": "types",
    "types=": "types",
    "kinds=ip,planet": "kinds",
    "since=yesterday": "since",
    "until=2026-11-21T12:00:00": "until",
    "colour=red": "colour",
}


@on_one_database
async def test_a_wrong_query_is_a_problem_of_the_callers(analyst):
    for query, name in WRONG.items():
        for path in (f"{path_of('x')}?{query}", f"{EXPORT}?value=x&{query}"):
            [error] = (await problem(await analyst.send("GET", path), 422))["errors"]
            assert error["path"].startswith(name)


@on_one_database
async def test_a_wrong_word_is_told_the_right_ones(analyst):
    response = await analyst.send("GET", f"{path_of('x')}?kinds=planet&types=knows")
    details = {error["path"]: error["detail"] for error in (await problem(response, 422))["errors"]}
    assert "technique" in details["kinds.0"]
    assert "resolves-to" in details["types.0"]


async def test_a_shortest_path_is_found(analyst, graph):
    first = await graph.add(IP, DOMAIN)
    second = await graph.add(DOMAIN, USER)
    answer = await analyst.read(PATH, **{"from": IP.value, "to": USER.value, "to_kind": "User"})
    GraphPath.model_validate(answer)
    assert answer["nodes"] == [*map(shown, (IP, first, DOMAIN, second, USER))]
    assert len(answer["edges"]) == 4
    assert answer["complete"] is True


@on_one_database
async def test_where_there_is_no_path_it_is_empty(analyst, graph):
    await graph.add(IP)
    await graph.add(HOST)
    answer = await analyst.read(PATH, **{"from": IP.value, "to": HOST.value})
    assert answer == {"nodes": [], "edges": [], "complete": True}
    same = await analyst.read(PATH, **{"from": IP.value, "to": IP.value})
    assert (same["nodes"], same["edges"]) == ([shown(IP)], [])


@on_one_database
async def test_a_path_has_two_ends(analyst):
    for query in ("", "from=a", "to=a", "from=&to=a", "from=a&to=b&from_kind=x"):
        await problem(await analyst.send("GET", f"{PATH}?{query}"), 422)


@on_one_database
async def test_a_path_goes_only_along_the_types_that_are_wanted(analyst, graph):
    await graph.add(IP, techniques=["T1110"])
    await graph.add(HOST, techniques=["T1110"])
    ends = {"from": IP.value, "to": HOST.value}
    assert len((await analyst.read(PATH, **ends))["nodes"]) == 5
    assert (await analyst.read(PATH, **ends, types="involves"))["nodes"] == []


@on_one_database
async def test_an_export_without_a_value_is_of_the_latest_incidents(analyst, graph):
    await graph.add(IP)
    await graph.add(DOMAIN)
    defaults = {"depth": "1"}  # which generated clients send
    response = await analyst.send("GET", EXPORT, params={"limit": "1", **defaults})
    types = {object_["type"] for object_ in json.loads(await response.read())["objects"]}
    assert "domain-name" in types
    assert "ipv4-addr" not in types
    refused = await problem(await analyst.send("GET", EXPORT, params={"depth": "2"}), 422)
    assert "these parameters require `value`" in refused["errors"][0]["detail"]


async def test_how_large_the_graph_is(analyst, graph, clock):
    await graph.add(IP, DOMAIN, techniques=["T1059"])
    await SearchIndexer(graph.database, clock, Notifiers()).catch_up()  # which counts entities
    await graph.tell(IP, RelationType.RESOLVES_TO, DOMAIN)
    answer = await analyst.read(STATS)
    GraphStatistics.model_validate(answer)
    nodes = {count["name"]: count["count"] for count in answer["nodes"]}
    edges = {count["name"]: count["count"] for count in answer["edges"]}
    assert nodes.items() >= {"incident": 1, "ip": 1, "domain": 1, "technique": 1}.items()
    assert edges.items() >= {"involves": 2, "uses": 1, "resolves-to": 1}.items()
    await problem(await analyst.send("GET", f"{STATS}?kind=ip"), 422)


async def test_an_export_is_stix_that_others_understand(analyst, graph):
    await graph.add(IP, DOMAIN, PAGE, USER, techniques=["T1059.001"])
    response = await analyst.send("GET", EXPORT, params={"value": IP.value, "depth": "2"})
    assert (response.status, response.content_type) == (200, "application/stix+json")
    bundle = stix2.parse(await response.text(), version="2.1", allow_custom=True)
    types = {object_.type for object_ in bundle.objects}
    assert types >= {"ipv4-addr", "domain-name", "url", "attack-pattern"}
    again = await analyst.send("GET", EXPORT, params={"value": IP.value, "depth": "2"})
    assert await again.read() == await response.read()
    held = {"If-None-Match": response.headers["ETag"]}
    unchanged = await analyst.send(
        "GET", EXPORT, params={"value": IP.value, "depth": "2"}, headers=held
    )
    assert unchanged.status == 304


@on_one_database
async def test_an_export_is_narrowed_as_the_entity_is(analyst, graph):
    await graph.add(IP, DOMAIN, techniques=["T1059.001"])
    response = await analyst.send("GET", EXPORT, params={"value": IP.value, "kinds": "incident"})
    types = {object_["type"] for object_ in json.loads(await response.read())["objects"]}
    assert "ipv4-addr" in types
    assert types.isdisjoint({"domain-name", "attack-pattern"})


@on_one_database
async def test_an_export_is_asked_for_as_what_it_is(analyst, graph):
    await graph.add(IP)
    query = {"value": IP.value}
    for accept, status in (("application/stix+json", 200), ("application/json", 406)):
        response = await analyst.send("GET", EXPORT, params=query, headers={"Accept": accept})
        assert response.status == status


@on_one_database
async def test_a_technique_leads_to_the_incidents_that_use_it(analyst, graph):
    incident = await graph.add(IP, techniques=["T1059.001"])
    found = await around(analyst, technique("T1059.001").value)
    assert found == [("technique", "T1059.001"), ("incident", incident.value)]
