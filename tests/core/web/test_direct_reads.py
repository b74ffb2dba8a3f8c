"""Reads that one statement answers: the same response as by the handler, and no more access."""

from __future__ import annotations

import asyncio

import pytest
from argon2 import PasswordHasher
from sqlalchemy import delete, update

from api_server import open_api, problem
from incident_rows import NOW, add_incidents, change_incident
from tocsin.credentials import Scope
from tocsin.store.tables import (
    api_keys,
    incident_documents,
    incident_entities,
    incident_techniques,
    incidents,
)
from tocsin.web.direct_reads import DirectReads

PATH = "/api/v1/incidents"
VARYING = ("date", "x-request-id", "ratelimit")


@pytest.fixture
def direct(monkeypatch) -> list[bool]:
    """Whether each read with a key since was answered by one statement."""
    answered = []
    answer = DirectReads._answer

    async def note(self, request):
        response = await answer(self, request)
        if "X-API-Key" in request.headers:
            answered.append(response is not None)
        return response

    monkeypatch.setattr(DirectReads, "_answer", note)
    return answered


@pytest.fixture
async def callers(api):
    """Headers of a key, which was verified, and of an access token, for which handlers read."""
    key = await api.reader()
    await api.client.get(PATH, headers=key)
    return key, {"Authorization": f"Bearer {await api.access_token(Scope.INCIDENTS_READ)}"}


async def read(api, path: str, headers: dict[str, str]):
    async with api.client.get(path, headers=headers) as response:
        body = await response.read()
        fields = {name.casefold(): value for name, value in response.headers.items()}
        for name in VARYING:
            assert fields.pop(name)
        return response.status, body, fields


QUERIES = [
    "",
    "?limit=3",
    "?limit=7",
    "?severity=low",
    "?status=CLOSED&limit=1",
    "?severity=High&status=new&limit=2",
    "?severity=Informational",
    "?changed_after=",
    "?changed_after=&limit=2&severity=high",
]


async def test_one_statement_answers_as_the_handler_does(api, callers, direct):
    write = api.services.database.write
    for severity, status in (("High", "New"), ("Low", "New"), ("High", "Closed")):
        entities = [("user", "Ä"), ("ip", "192.0.2.1")]
        await write(add_incidents, 2, severity=severity, status=status, entities=entities)
    await write(change_incident, 2, now=NOW, title='"quoted" \\ 🔔')
    key, token = callers
    direct.clear()
    pages = [f"{PATH}{query}" for query in QUERIES]
    while pages:
        path = pages.pop()
        answer = await read(api, path, token)
        for _ in range(3):  # the third time, the page is known
            assert await read(api, path, key) == answer
        assert answer[0] == 200
        if link := answer[2].get("link"):
            pages.append(link.split(">")[0].removeprefix(f"<{api.services.public_url}"))
    for number in (1, 2):
        one = f"{PATH}/{number}"
        answer = await read(api, one, key)
        assert answer == await read(api, one, token)
        held = {"If-None-Match": answer[2]["etag"]}
        assert (await read(api, one, key | held))[0] == 304
        assert await read(api, one, key | held) == await read(api, one, token | held)
    assert direct
    assert all(direct)


async def test_what_is_unusual_is_left_to_the_handler(api, callers, direct):
    await api.services.database.write(add_incidents, 2)
    key, token = callers
    direct.clear()
    for path in (
        f"{PATH}/9",
        f"{PATH}/1?x=1",
        f"{PATH}?timespan=P1D",
        f"{PATH}?limit=0",
        f"{PATH}/x",
    ):
        answer = await read(api, path, key)
        assert answer[:2] == (await read(api, path, token))[:2]
    await problem(await api.client.get(f"{PATH}/1", headers=key | {"Accept": "text/html"}), 406)
    await problem(await api.client.get(f"{PATH}/1", headers=key | token), 400)
    assert not any(direct)


async def test_without_a_valid_document_the_incident_itself_is_read(api, callers, direct):
    write = api.services.database.write
    await write(add_incidents, 3)
    key, _ = callers
    before = await read(api, f"{PATH}/2", key), await read(api, PATH, key)
    removed = delete(incident_documents).where(incident_documents.c.number == 2)
    await write(lambda connection: connection.execute(removed))
    direct.clear()
    assert (await read(api, f"{PATH}/2", key), await read(api, PATH, key)) == before
    assert direct == [False, False]


async def test_a_request_counts_once_however_it_is_answered(database, clock):
    async with open_api(database, clock, rate_limit=60, rate_burst=4) as api:
        await database.write(add_incidents, 2)
        headers = await api.reader()
        for path in (f"{PATH}/1", f"{PATH}/9", PATH):
            await api.client.get(path, headers=headers)
        response = await api.client.get(f"{PATH}/1", headers=headers)
        assert (response.status, response.headers["RateLimit"]) == (200, '"credential";r=0;t=4')
        await problem(await api.client.get(f"{PATH}/1", headers=headers), 429)


_OTHER_HASH = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash("other")
ENDINGS = {
    "disabled": ({"disabled_at": NOW}, 401),
    "expired": ({"expires_at": NOW}, 401),
    "other hash": ({"secret_hash": _OTHER_HASH}, 401),
    "no scope": ({"scopes": ["search:read"]}, 403),
    "renamed": ({"name": "other"}, 200),
}


@pytest.mark.parametrize("ending", ENDINGS)
async def test_a_change_of_the_keys_row_counts_with_the_next_request(nodes, ending):
    first, second = nodes
    values, status = ENDINGS[ending]
    write = first.services.database.write
    await write(add_incidents)
    headers = await first.reader()
    for api in (first, second, first, second):
        assert (await api.client.get(f"{PATH}/1", headers=headers)).status == 200
    await write(lambda connection: connection.execute(update(api_keys).values(**values)))
    for api in nodes:
        assert (await api.client.get(f"{PATH}/1", headers=headers)).status == status


async def test_a_key_that_expires_meanwhile_ends_then(api, clock, direct):
    await api.services.database.write(add_incidents)
    headers = {"X-API-Key": await api.key(Scope.INCIDENTS_READ, days=1)}
    for _ in range(2):
        assert (await api.client.get(f"{PATH}/1", headers=headers)).status == 200
    clock.advance(minutes=59)
    assert (await api.client.get(f"{PATH}/1", headers=headers)).status == 200
    assert direct[-1]
    clock.advance(hours=24)
    answer = await problem(await api.client.get(f"{PATH}/1", headers=headers), 401)
    assert "expired" in answer["detail"]


@pytest.mark.parametrize("query", ["?limit=1&severity=High", "?changed_after="])
async def test_a_known_page_ends_with_the_next_change_and_with_the_key(api, callers, query):
    write, path = api.services.database.write, f"{PATH}{query}"
    await write(add_incidents, 2, severity="High")
    key, token = callers
    for number in (1, 2):
        for _ in range(3):
            before = await read(api, path, key)
        assert api.services.known_pages.is_stable(path)
        await write(change_incident, number, now=NOW, title=f"other {number}")
        after = await read(api, path, key)
        assert after == await read(api, path, token)
        assert after[1] != before[1]
    for _ in range(3):
        await read(api, path, key)
    await write(lambda connection: connection.execute(update(api_keys).values(disabled_at=NOW)))
    await problem(await api.client.get(path, headers=key), 401)


async def test_a_removed_incident_changes_totals_and_tags(api, callers):
    write = api.services.database.write
    await write(add_incidents, 4)
    key, token = callers

    def remove(connection):
        for table in (incident_entities, incident_techniques, incidents):
            connection.execute(delete(table).where(table.c[0] == 2))

    for _ in range(3):
        before = await read(api, f"{PATH}?limit=1", key)
    await write(remove)
    after = await read(api, f"{PATH}?limit=1", key)
    assert (before[1] != after[1], before[2]["etag"] != after[2]["etag"]) == (True, True)
    assert b'"total":3' in after[1]
    assert after == await read(api, f"{PATH}?limit=1", token)


async def test_tags_differ_between_base_urls(database, clock):
    await database.write(add_incidents)
    tags = set()
    for url in ("https://one.example", "https://two.example"):
        async with open_api(database, clock, base_url=url) as api:
            headers = {**await api.reader(), "Host": url.removeprefix("https://")}
            for _ in range(2):
                tags.add((await api.client.get(f"{PATH}/1", headers=headers)).headers["ETag"])
    assert len(tags) == 2


async def test_callers_that_read_at_once_get_their_own_responses(api, callers, direct):
    write = api.services.database.write
    await write(add_incidents, 5)
    key, token = callers
    ended = await api.reader()
    assert (await read(api, f"{PATH}/1", ended))[0] == 200
    is_other = api_keys.c.key_id != key["X-API-Key"].split("_")[-2]
    await write(
        lambda connection: connection.execute(
            update(api_keys).where(is_other).values(disabled_at=NOW)
        )
    )
    paths = [f"{PATH}/{number}" for number in (1, 2, 3, 4, 5, 1)]
    expected = [await read(api, path, token) for path in paths]
    direct.clear()
    reads = asyncio.gather(*[read(api, path, key) for path in paths])
    refused = await asyncio.gather(*[api.client.get(path, headers=ended) for path in paths])
    assert await reads == expected
    assert {response.status for response in refused} == {401}
    assert direct.count(True) == len(paths)
