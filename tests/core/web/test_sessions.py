"""Having something investigated over HTTP, following it, and going on from it."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from aiohttp.test_utils import TestClient, TestServer
from sqlalchemy import func, insert, select, update

from api_server import URL, problem
from session_rows import add_session
from tocsin.store.tables import audit, sessions
from tocsin.web import make_app
from tocsin.web.routes.sessions import MAX_QUEUED_SESSIONS
from tocsin.web.schemas.sessions import Session, StartedSession

START = "/api/v1/investigations/start"
QUERY = {"query": "Is 203.0.113.7 still at it?"}
ONCE = {"Idempotency-Key": "8e03978e-40d5-43dd-bc93-6894a57f9324"}
NOWHERE = ["x", "ses_x", "1", "ses_01KAJE0M5Y7R3S9T2V4W6X8Z1A", "%00", "%ED%B3%BF", "s" * 5000]

on_one_database = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


def path_of(session_id: str, part: str = "") -> str:
    return f"/api/v1/sessions/{session_id}{part}"


async def start(analyst, **body) -> str:
    """Have something investigated, and return the session's id."""
    return (await analyst.ask("POST", START, 202, json=QUERY | body))["session_id"]


async def count(api, table) -> int:
    query = select(func.count()).select_from(table)
    return await api.services.database.read(lambda connection: connection.scalar(query))


async def set_sessions(api, **values) -> None:
    statement = update(sessions).values(**values)
    await api.services.database.write(lambda connection: connection.execute(statement) and None)


async def test_starting_answers_at_once_with_where_to_follow_it(api, analyst):
    answer = await analyst.ask("POST", START, 202, json=QUERY)
    StartedSession.model_validate(answer)
    session_id = answer["session_id"]
    assert answer["status"] == "queued"
    assert answer["url"] == f"{URL}/investigations/{session_id}"
    session = await analyst.read(path_of(session_id))
    Session.model_validate(session)
    assert session["query"] == QUERY["query"]
    assert (session["persona"], session["provider"], session["run"]) == ("analyst", None, 1)
    assert (session["report"], session["completed_at"], session["error"]) == (None, None, None)
    assert session["created_by"] == "playbooks"
    assert [(message["role"], message["text"]) for message in session["messages"]] == [
        ("user", QUERY["query"])
    ]


@pytest.mark.parametrize(
    ("written", "persona"),
    [("EXECUTIVE", "executive"), ("Threat-Hunter", "threat-hunter"), ("analyst", "analyst")],
)
@on_one_database
async def test_a_persona_is_taken_in_any_case(analyst, written, persona):
    session_id = await start(analyst, persona=written)
    assert (await analyst.read(path_of(session_id)))["persona"] == persona


@on_one_database
async def test_an_unknown_persona_is_told_the_valid_ones(api, analyst):
    document = await problem(
        await analyst.send("POST", START, json=QUERY | {"persona": "boss"}), 422
    )
    [error] = document["errors"]
    assert error["path"] == "persona"
    for persona in ("analyst", "threat-hunter", "incident-responder", "executive"):
        assert persona in error["detail"]
    assert await count(api, sessions) == 0


@on_one_database
async def test_a_known_provider_is_kept_and_an_unknown_one_refused(api, analyst):
    session_id = await start(analyst, provider="edge")
    assert (await analyst.read(path_of(session_id)))["provider"] == "edge"
    for name in ("egde", "EDGE", ""):
        response = await analyst.send("POST", START, json=QUERY | {"provider": name})
        [error] = (await problem(response, 422))["errors"]
        assert error["path"] == "provider"
    response = await analyst.send("POST", START, json=QUERY | {"provider": "egde"})
    assert "edge, sensors" in (await problem(response, 422))["errors"][0]["detail"]
    assert await count(api, sessions) == 1


WRONG = {
    "nothing": {},
    "no query": {"query": None},
    "empty": {"query": ""},
    "blank": {"query": " \n "},
    "too long": {"query": "x" * 20_001},
    "a NUL": {"query": "a\0b"},
    "a number": {"query": 7},
    "a list of personas": QUERY | {"persona": ["analyst"]},
    "a number as provider": QUERY | {"provider": 7},
    "unknown member": QUERY | {"depth": 3},
}


@on_one_database
async def test_a_body_that_is_wrong_starts_nothing(api, analyst):
    for what, body in WRONG.items():
        document = await problem(await analyst.send("POST", START, json=body), 422)
        assert len(document["errors"]) == 1, what
    assert await count(api, sessions) == 0


async def test_the_longest_query_in_any_script_is_taken(analyst):
    query = "\U0001f575" * 16_000  # a body holds 64 KiB
    session_id = (await analyst.ask("POST", START, 202, data=body_of(query), headers=JSON))[
        "session_id"
    ]
    assert (await analyst.read(path_of(session_id)))["query"] == query


JSON = {"Content-Type": "application/json"}


def body_of(query: str) -> bytes:
    return f'{{"query": "{query}"}}'.encode()


@on_one_database
async def test_a_start_with_a_key_takes_effect_once(api, analyst):
    first = await analyst.ask("POST", START, 202, json=QUERY, headers=ONCE)
    again = await analyst.send("POST", START, json=QUERY, headers=ONCE)
    assert (again.status, await again.json()) == (202, first)
    assert again.headers["Idempotency-Replayed"] == "true"
    await problem(await analyst.send("POST", START, json={"query": "other"}, headers=ONCE), 422)
    assert await count(api, sessions) == 1


@on_one_database
async def test_starts_with_one_key_at_the_same_time_are_one(api, analyst):
    sent = [analyst.send("POST", START, json=QUERY, headers=ONCE) for _ in range(4)]
    statuses = [response.status for response in await asyncio.gather(*sent)]
    assert set(statuses) <= {202, 409}
    assert 202 in statuses
    assert await count(api, sessions) == 1


async def test_a_message_has_an_ended_session_go_on_with_its_report_still_there(api, analyst):
    session_id = await api.services.database.write(add_session)
    before = await analyst.read(path_of(session_id))
    message = {"message": " And the month before? "}
    answer = await analyst.ask("POST", path_of(session_id, "/message"), 202, json=message)
    StartedSession.model_validate(answer)
    assert (answer["session_id"], answer["status"]) == (session_id, "queued")
    session = await analyst.read(path_of(session_id))
    assert (session["status"], session["run"], session["completed_at"]) == ("queued", 2, None)
    assert session["report"]
    assert session["report"] == before["report"]
    assert session["messages"][-1]["text"] == "And the month before?"
    assert session["messages"][-1]["run"] == 2


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
@on_one_database
async def test_whatever_has_ended_can_go_on(api, analyst, status):
    session_id = await start(analyst)
    await set_sessions(api, status=status)
    await analyst.ask("POST", path_of(session_id, "/message"), 202, json={"message": "more"})


@pytest.mark.parametrize("status", ["queued", "running"])
async def test_a_message_to_a_session_under_way_is_a_conflict(api, analyst, status):
    session_id = await start(analyst)
    await set_sessions(api, status=status)
    path = path_of(session_id, "/message")
    document = await problem(await analyst.send("POST", path, json={"message": "more"}), 409)
    assert status in document["detail"]
    assert len((await analyst.read(path_of(session_id)))["messages"]) == 1


async def test_of_messages_at_the_same_time_one_is_taken(api, analyst):
    session_id = await api.services.database.write(add_session)
    path = path_of(session_id, "/message")
    sent = [analyst.send("POST", path, json={"message": str(n)}) for n in range(4)]
    statuses = sorted([response.status for response in await asyncio.gather(*sent)])
    assert statuses == [202, 409, 409, 409]
    assert (await analyst.read(path_of(session_id)))["run"] == 2


@on_one_database
async def test_a_message_with_a_key_takes_effect_once(api, analyst):
    session_id = await api.services.database.write(add_session)
    path, body = path_of(session_id, "/message"), {"message": "more"}
    first = await analyst.ask("POST", path, 202, json=body, headers=ONCE)
    assert await analyst.ask("POST", path, 202, json=body, headers=ONCE) == first
    assert (await analyst.read(path_of(session_id)))["run"] == 2


@on_one_database
async def test_a_wrong_message_is_refused(api, analyst):
    session_id = await api.services.database.write(add_session)
    for body in ({}, {"message": ""}, {"message": "a\0"}, {"query": "more"}):
        await problem(await analyst.send("POST", path_of(session_id, "/message"), json=body), 422)
    assert (await analyst.read(path_of(session_id)))["run"] == 1


@pytest.mark.parametrize("status", ["queued", "running"])
@on_one_database
async def test_a_session_under_way_can_be_cancelled(api, analyst, status):
    session_id = await start(analyst)
    await set_sessions(api, status=status)
    session = await analyst.ask("POST", path_of(session_id, "/cancel"))
    Session.model_validate(session)
    assert session["status"] == "cancelled"
    assert session["completed_at"]
    assert await analyst.read(path_of(session_id)) == session


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
@on_one_database
async def test_cancelling_what_has_ended_changes_nothing(api, analyst, status):
    session_id = await api.services.database.write(add_session, status=status)
    before = await analyst.read(path_of(session_id))
    assert await analyst.ask("POST", path_of(session_id, "/cancel")) == before
    assert await count(api, audit) == 0


async def test_an_id_that_leads_to_nothing_is_not_found(analyst):
    for session_id in NOWHERE:
        await problem(await analyst.send("GET", path_of(session_id)), 404)
        await problem(await analyst.send("POST", path_of(session_id, "/cancel")), 404)
        sent = await analyst.send("POST", path_of(session_id, "/message"), json={"message": "more"})
        await problem(sent, 404)


@on_one_database
async def test_a_session_unchanged_is_not_sent_again(api, analyst):
    session_id = await start(analyst)
    first = await analyst.send("GET", path_of(session_id))
    held = {"If-None-Match": first.headers["ETag"]}
    assert (await analyst.send("GET", path_of(session_id), headers=held)).status == 304
    await set_sessions(api, status="running")
    assert (await analyst.send("GET", path_of(session_id), headers=held)).status == 200


@asynccontextmanager
async def serving(services, headers):
    """Return who calls an API that stands on these services."""
    async with TestClient(TestServer(make_app(services))) as client:
        yield lambda path, body: client.post(path, json=body, headers=headers)


@on_one_database
async def test_where_there_is_no_investigator_nothing_is_taken(api, analyst):
    session_id = await api.services.database.write(add_session)
    services = replace(api.services, no_investigator="plugins.toml disables it")
    async with serving(services, analyst.headers) as post:
        for path, body in (
            (START, QUERY),
            (path_of(session_id, "/message"), {"message": "more"}),
        ):
            document = await problem(await post(path, body), 503)
            assert "plugins.toml disables it" in document["detail"]
        assert (await post(path_of(session_id, "/cancel"), None)).status == 200
    assert await count(api, sessions) == 1


async def test_where_a_thousand_sessions_wait_no_more_is_taken_for_a_while(api, analyst):
    ended = await api.services.database.write(add_session)
    waiting = await start(analyst)
    await api.services.database.write(copy_session, waiting, MAX_QUEUED_SESSIONS - 1)
    for path, body in ((START, QUERY), (path_of(ended, "/message"), {"message": "more"})):
        response = await analyst.send("POST", path, json=body)
        assert int(response.headers["Retry-After"]) > 0
        assert "1,000 sessions are already queued" in (await problem(response, 503))["detail"]
    await analyst.ask("POST", path_of(waiting, "/cancel"))
    await start(analyst)


def copy_session(connection, session_id: str, times: int) -> None:
    row = connection.execute(select(sessions).where(sessions.c.id == session_id)).mappings().one()
    copies = [{**row, "id": f"ses_{n:026}"} for n in range(times)]
    connection.execute(insert(sessions), copies)
