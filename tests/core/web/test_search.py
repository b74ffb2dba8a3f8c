"""Searching over HTTP: incidents and sessions by words, entities by their values."""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from datetime import timedelta
from html import unescape

import orjson
import pytest

from api_server import URL, problem
from incident_rows import NOW
from report_samples import HOSTILE
from tocsin.investigations import create_session
from tocsin.model import Persona
from tocsin.store.text import clean_text
from tocsin.web.pagination import CompositeCursor, PageCursor
from tocsin.web.routes import investigations, search
from tocsin.web.schemas.search import EntitySearchResults, SearchResults

SEARCH = "/api/v1/search"
ENTITIES = "/api/v1/search/entities"

on_one_database = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


async def ask(api, query: str) -> str:
    """Store a session, which is found at once."""
    usual = {"persona": Persona.ANALYST, "provider": None, "by": "ana", "now": NOW}
    return await api.services.database.write(create_session, query=query, **usual)


async def pages(analyst, path: str, name: str, **query) -> list[list[dict]]:
    """Return what each page has, gone from one to the next by `Link`."""
    found = []
    while query:
        response = await analyst.send("GET", path, params=query)
        page = await response.json()
        found.append(page[name])
        query = dict(response.links["next"]["url"].query) if response.links else {}
        assert query.get("cursor") == page["next_cursor"]
    return found


async def test_incidents_and_sessions_are_found_by_words(api, analyst, add):
    [number] = await add(title="Brute force against web01")
    session_id = await ask(api, "Who tried brute force?")
    answer = await analyst.read(SEARCH, q="BRUTE force")
    SearchResults.model_validate(answer)
    assert (answer["total"], answer["total_relation"], answer["next_cursor"]) == (2, "eq", None)
    found = {result["kind"]: result for result in answer["results"]}
    assert found["incident"]["id"] == str(number)
    assert found["incident"]["url"] == f"{URL}/incidents/{number}"
    assert found["session"]["id"] == session_id
    assert found["session"]["url"] == f"{URL}/investigations/{session_id}"
    assert "<mark>brute</mark> <mark>force</mark>?" in found["session"]["snippet"]
    assert all(0 < result["score"] <= 1 for result in answer["results"])


async def test_results_are_paged_in_one_order(analyst, add):
    await add(5, description="a beacon")
    [whole] = await pages(analyst, SEARCH, "results", q="beacon")
    turned = await pages(analyst, SEARCH, "results", q="beacon", limit="2")
    assert [len(page) for page in turned] == [2, 2, 1]
    assert [result for page in turned for result in page] == whole
    assert len({result["id"] for result in whole}) == 5


async def test_what_comes_while_pages_are_turned_is_on_none_of_them(analyst, add):
    await add(4, description="a beacon")
    first = await analyst.read(SEARCH, q="beacon", limit=2)
    [late] = await add(description="a beacon")
    second = await analyst.read(SEARCH, q="beacon", limit=2, cursor=first["next_cursor"])
    assert (second["total"], second["next_cursor"]) == (4, None)
    assert str(late) not in {result["id"] for result in second["results"]}


NOT_UNDERSTOOD = {
    'a "quotation': "closing quotation mark is missing",
    "color:red": "unknown field 'color'",
    "severity:bad": "Informational, Low, Medium, High, Critical",
    "a*": "at least 3 characters",
    "OR": "a term on both sides",
    "before:yesterday": "use a day such as",
    "...": "not contain a word",
    " ": "enter a query",
    "x" * 1001: "at most 1000 characters",
    "x " * 33: "at most 32 terms",
}


@on_one_database
async def test_a_query_that_cannot_be_understood_says_why(analyst):
    for q, words in NOT_UNDERSTOOD.items():
        document = await problem(await analyst.send("GET", SEARCH, params={"q": q}), 422)
        assert document["detail"].startswith("q")
        assert words in document["detail"]


def forged(*parts) -> str:
    return urlsafe_b64encode(orjson.dumps(parts)).decode().rstrip("=")


FOREIGN = {
    "empty": "",
    "no cursor": "x",
    "no list": forged(),
    "an object": urlsafe_b64encode(b'{"q": 1, "a": 2, "b": 3}').decode(),
    "a text": urlsafe_b64encode(b'"qabc"').decode(),
    "of another list": PageCursor(investigations.LIST, "1").encode(),
    "too few": forged("q", 1, 1),
    "too many": forged("q", 1, 1, 1, 1),
    "negative": forged("q", 1, 1, -1),
    "too large": forged("q", 1, 10**18, 1),
    "a fraction": forged("q", 1, 1, 1.0),
    "a truth": forged("q", 1, 1, True),
    "entities'": CompositeCursor(search.ENTITIES, ("", 0, "", "", 0)).encode(),
    "very long": "a" * 7000,
}


@on_one_database
async def test_a_cursor_that_was_not_given_out_is_refused(analyst):
    for what, cursor in FOREIGN.items():
        response = await analyst.send("GET", SEARCH, params={"q": "x", "cursor": cursor})
        [error] = (await problem(response, 422))["errors"]
        assert error["path"] == "cursor", what


FORGED = {
    "a part that no name is": forged("e", "a", 2, "ip", "a", 0),
    "a NUL": forged("e", "a\0", 0, "ip", "a", 0),
    "a number as name": forged("e", 1, 0, "ip", "a", 0),
    "results'": CompositeCursor(search.RESULTS, (1, 1, 1)).encode(),
}


async def test_a_cursor_of_entities_that_was_not_given_out_is_refused(analyst):
    for what, cursor in FORGED.items():
        response = await analyst.send("GET", ENTITIES, params={"q": "x", "cursor": cursor})
        [error] = (await problem(response, 422))["errors"]
        assert error["path"] == "cursor", what


async def test_a_forged_cursor_that_could_have_been_given_out_leads_to_a_page(analyst, add):
    await add(3, description="a beacon", entities=[("ip", "192.0.2.1")])
    largest = 10**18 - 1
    for path, cursor in (
        (SEARCH, forged("q", largest, largest, 0)),
        (SEARCH, forged("q", largest, largest, largest)),
        (SEARCH, forged("q", 0, 0, 0)),
        (ENTITIES, forged("e", "", 0, "", "", largest)),
        (ENTITIES, forged("e", "\U0010ffff" * 90, 1, "x", "y" * 2000, 0)),
    ):
        await analyst.read(path, q="beacon", cursor=cursor)


async def test_entities_are_found_by_value_and_in_their_order(analyst, add, clock):
    values = ["evil.example", "evil.example.net", "evil.example.org"]
    for times, value in enumerate(values, 1):
        await add(times, entities=[("domain", value)], now=clock.now() - timedelta(hours=times))
    answer = await analyst.read(ENTITIES, q="EVIL[.]example")
    EntitySearchResults.model_validate(answer)
    assert [(entity["value"], entity["incident_count"]) for entity in answer["entities"]] == [
        ("evil.example", 1),
        ("evil.example.org", 3),
        ("evil.example.net", 2),
    ]
    assert answer["entities"][0]["first_seen"] == "2026-11-21T11:00:00.000Z"
    assert (answer["total"], answer["total_relation"]) == (3, "eq")


async def test_entities_are_paged_in_one_order(analyst, add):
    values = [("user", f"é{n}") for n in range(5)]
    await add(entities=values)
    [whole] = await pages(analyst, ENTITIES, "entities", q="é")
    turned = await pages(analyst, ENTITIES, "entities", q="é", limit="2")
    assert [len(page) for page in turned] == [2, 2, 1]
    assert [entity for page in turned for entity in page] == whole


async def test_an_entity_is_listed_once_however_many_of_its_names_match(analyst, add):
    """`corp` begins the account as a whole and its domain; here these are more than 200 names."""
    values = [f"CORP\\user{n:03}" for n in range(150)]
    await add(entities=[("user", value) for value in values])
    found = await pages(analyst, ENTITIES, "entities", q="corp", limit="100")
    assert sorted(entity["value"] for page in found for entity in page) == values


@on_one_database
async def test_a_page_of_entities_begins_after_the_longest_values(analyst, add):
    """The cursor names the last entity of the two hundred that were ranked."""
    await add(entities=[("file", f"{'ü' * 900}{n:03}") for n in range(203)])
    found = await pages(analyst, ENTITIES, "entities", q="ü", limit="200")
    assert sum(map(len, found)) == 203


@on_one_database
async def test_entities_are_narrowed_to_a_kind_in_any_case(analyst, add):
    await add(entities=[("user", "eve"), ("host", "eve")])
    [entity] = (await analyst.read(ENTITIES, q="eve", kind="HOST"))["entities"]
    assert entity["kind"] == "host"
    document = await problem(await analyst.send("GET", f"{ENTITIES}?q=eve&kind=planet"), 422)
    assert "file_hash" in document["errors"][0]["detail"]


@pytest.mark.parametrize("path", [SEARCH, ENTITIES])
@on_one_database
async def test_a_wrong_query_is_a_problem_of_the_callers(analyst, path):
    for query in ("", "q=", "q=%00", "q=x&limit=0", "q=x&limit=201", "q=x&w=1"):
        document = await problem(await analyst.send("GET", f"{path}?{query}"), 422)
        assert len(document["errors"]) == 1


async def test_a_snippet_is_safe_to_show_whatever_an_incident_says(api, analyst, add):
    for text in HOSTILE:
        shown = clean_text(text, 500)
        await add(title=shown, description=f"needle {shown} needle")
    await ask(api, clean_text(f"needle {' '.join(HOSTILE)}", 1_000))
    found = (await analyst.read(SEARCH, q="needle", limit=200))["results"]
    assert len(found) == len(HOSTILE) + 1
    for result in found:
        rest = re.sub("</?mark>", "", result["snippet"])
        assert not re.search("[<>\"']", rest)
        assert result["snippet"].count("<mark>") == result["snippet"].count("</mark>") > 0
    snippets = {unescape(re.sub("</?mark>", "", result["snippet"])) for result in found}
    assert any("<script>alert(1)</script>" in snippet for snippet in snippets)
    assert any("{{ 7*7 }}" in snippet for snippet in snippets)
