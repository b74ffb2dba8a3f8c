"""Reading the audit log over HTTP, and what of refusals is in it."""

from __future__ import annotations

from collections import Counter

import pytest
from sqlalchemy import func, select

from api_callers import AUDIT, INCIDENTS, KEYS
from api_server import open_api, problem
from oauth_answers import GRANT, TOKEN
from tocsin.credentials import Scope, generate_client_id, generate_client_secret, generate_key
from tocsin.store.tables import audit
from tocsin.web.schemas.audit import AuditList

on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


async def count_rows(api) -> int:
    query = select(func.count()).select_from(audit)
    return await api.services.database.read(lambda connection: connection.scalars(query).one())


async def flush(api) -> None:
    await api.services.refusals.flush(api.services.database)


async def refusals(admin) -> Counter:
    """Return how often each address was refused, by reason, as far as that is written."""
    return Counter(
        {
            (entry["address"], entry["details"]["reason"]): entry["count"]
            for entry in await admin.audited(action="refused")
        }
    )


# Reading


async def test_an_entry_has_all_its_members(admin):
    key = await admin.create_key()
    page = await admin.read(AUDIT)
    AuditList.model_validate(page)
    [entry] = page["entries"]
    assert entry.pop("id")
    assert entry.pop("request_id")
    assert entry == {
        "at": "2026-11-21T12:00:00.000Z",
        "actor": "admin:ana",
        "action": "api-key.create",
        "target": f"key:{key['key_id']}",
        "address": "127.0.0.1",
        "count": 1,
        "details": entry["details"],
        "position": None,
        "seal": None,
    }
    assert (page["total"], page["total_relation"], page["next_cursor"]) == (1, "eq", None)


async def test_a_sealed_entry_shows_its_seal(api, admin):
    await admin.create_key()
    await api.door.sealer.seal()
    [entry] = await admin.audited()
    assert entry["position"] == 1
    assert len(entry["seal"]) == 64


async def test_an_empty_log_has_its_members_too(admin):
    empty = {"entries": [], "total": 0, "total_relation": "eq", "next_cursor": None}
    assert await admin.read(AUDIT) == empty


async def test_pages_follow_each_other_from_the_newest(admin):
    names = [f"key {number}" for number in range(5)]
    for name in names:
        await admin.create_key(name=name)
    found, query = [], {"limit": 2}
    while True:
        page = await admin.read(AUDIT, **query)
        assert page["total"] == 5
        found += [entry["details"]["name"] for entry in page["entries"]]
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]
    assert found == names[::-1]


async def test_the_next_page_is_linked_under_the_same_filter(api, admin):
    for _ in range(3):
        await admin.create_key()
    await admin.create_client()
    response = await admin.send("GET", f"{AUDIT}?action=api-key.create&limit=2")
    link = response.links["next"]
    path = link["url"].path_qs
    assert path.startswith(f"{AUDIT}?action=api-key.create&limit=2&cursor=")
    [entry] = (await admin.read(path))["entries"]
    assert entry["action"] == "api-key.create"


async def test_entries_can_be_narrowed_and_the_total_with_them(admin):
    key, _ = await admin.create_key(), await admin.create_client()
    await admin.ask("DELETE", f"{KEYS}/{key['key_id']}")
    target = f"key:{key['key_id']}"
    for query, actions in (
        ({"action": "api-client.create"}, ["api-client.create"]),
        ({"target": target}, ["api-key.disable", "api-key.create"]),
        ({"target": target, "action": "api-key.create"}, ["api-key.create"]),
        ({"actor": "admin:ana", "action": "api-key.disable"}, ["api-key.disable"]),
        ({"actor": "admin:ben"}, []),
        ({"actor": "admin"}, []),
        ({"target": target.lower() + "x"}, []),
    ):
        page = await admin.read(AUDIT, **query)
        assert [entry["action"] for entry in page["entries"]] == actions
        assert page["total"] == len(actions)


async def test_entries_can_be_narrowed_by_when_they_were_written(admin, clock):
    for name in ("first", "second", "third"):
        await admin.create_key(name=name)
        clock.advance(minutes=1)
    for query, names in (
        ({"since": "2026-11-21T12:01:00Z"}, ["third", "second"]),
        ({"until": "2026-11-21T13:01:00+01:00"}, ["first"]),
        ({"since": "2026-11-21T12:01:00Z", "until": "2026-11-21T12:02:00Z"}, ["second"]),
        ({"since": "2026-11-22T00:00:00Z"}, []),
    ):
        page = await admin.read(AUDIT, **query)
        assert [entry["details"]["name"] for entry in page["entries"]] == names
        assert page["total"] == len(names)


@on_sqlite
@pytest.mark.parametrize("name", ["actor", "target"])
async def test_the_longest_name_that_an_entry_holds_can_be_asked_for(admin, name):
    assert (await admin.read(AUDIT, **{name: "x" * 500}))["entries"] == []
    response = await admin.send("GET", AUDIT, params={name: "x" * 501})
    [mistake] = (await problem(response, 422))["errors"]
    assert mistake["path"] == name


WRONG = [
    "limit=0",
    "limit=201",
    "limit=x",
    "cursor=",
    "cursor=x",
    "cursor=azowMQ",
    "reason=x",
    "action=a&action=b",
    "actor=%00",
    "since=yesterday",
    "until=2026-11-21T12:00:00",
]


@on_sqlite
@pytest.mark.parametrize("query", WRONG)
async def test_a_wrong_parameter_is_named(admin, query):
    [mistake] = (await problem(await admin.send("GET", f"{AUDIT}?{query}"), 422))["errors"]
    assert mistake["path"] == query.partition("=")[0]


async def test_only_admins_read_the_log(api):
    await problem(await api.client.get(AUDIT), 401)
    for headers in (
        {"X-API-Key": await api.key(*Scope)},
        {"Authorization": f"Bearer {await api.access_token(*Scope)}"},
    ):
        await problem(await api.client.get(AUDIT, headers=headers), 403)


async def test_no_entry_holds_a_secret(api, admin):
    key, client = await admin.create_key(), await admin.create_client()
    rotated = await admin.rotate(key["key_id"])
    regenerated = await admin.regenerate(client["client_id"])
    await api.client.get(INCIDENTS, headers={"X-API-Key": generate_key()[1]})
    await flush(api)
    written = str(await admin.audited())
    secrets = [key["api_key"], rotated["api_key"], client["client_secret"], regenerated]
    for secret in secrets:
        assert secret not in written
        assert secret.rpartition("_")[2] not in written
    assert admin.headers["Authorization"].split()[1] not in written
    assert "argon2" not in written


# Refusals


async def refuse_all_ways(api) -> Counter:
    """Be refused in every way, and return how often, by reason."""
    unknown = {"client_id": generate_client_id(), "client_secret": generate_client_secret()}
    get, post = api.client.get, api.client.post
    reader = await api.reader()
    refused = [
        await get(INCIDENTS),
        await get(INCIDENTS, headers={"X-API-Key": "malformed"}),
        await get(INCIDENTS, headers={"X-API-Key": generate_key()[1]}),
        await get(INCIDENTS, headers={"Authorization": "Bearer a.b.c"}),
        await post(TOKEN, data=GRANT | unknown),
        await get(KEYS, headers=reader),
        await get(INCIDENTS, headers={"X-API-Key": await api.key(Scope.GRAPH_READ)}),
    ]
    return Counter(
        {401: "credential refused", 403: "not permitted"}[answer.status] for answer in refused
    )


async def test_refusals_are_counted_by_address_and_reason(api, admin):
    told = await refuse_all_ways(api)
    await flush(api)
    expected = {("127.0.0.1", reason): count for reason, count in told.items()}
    assert await refusals(admin) == expected
    assert set(told.values()) == {5, 2}


async def test_too_many_requests_are_counted_too(database, clock):
    async with open_api(database, clock, rate_limit=1, rate_burst=2) as api:
        headers = await api.reader()
        answers = [await api.client.get(INCIDENTS, headers=headers) for _ in range(5)]
        assert [answer.status for answer in answers] == [200, 200, 429, 429, 429]
        await flush(api)
        counted = select(audit.c.address, audit.c.count, audit.c.details["reason"].as_string())
        [row] = await api.services.database.read(
            lambda connection: connection.execute(counted).all()
        )
        assert tuple(row) == ("127.0.0.1", 3, "too many requests")


async def test_failures_too_many_for_an_address_are_counted_too(database, clock):
    async with open_api(database, clock, auth_failure_limit=2) as api:
        for number in range(4):
            await api.client.get(INCIDENTS, headers={"X-API-Key": f"malformed-{number}"})
        await flush(api)
        counted = select(audit.c.details["reason"].as_string(), audit.c.count)
        rows = await api.services.database.read(
            lambda connection: connection.execute(counted).all()
        )
        assert dict(map(tuple, rows)) == {"credential refused": 2, "too many requests": 2}


async def test_a_refusal_is_no_row_of_its_own(api, admin):
    for _ in range(50):
        await api.client.get(INCIDENTS, headers={"X-API-Key": generate_key()[1]})
    assert await count_rows(api) == 0
    await flush(api)
    assert await count_rows(api) == 1
    await flush(api)
    assert await refusals(admin) == {("127.0.0.1", "credential refused"): 50}


async def test_refusals_of_several_minutes_and_addresses_are_told_apart(database, clock):
    async with open_api(database, clock, trusted_proxies="127.0.0.0/8") as api:
        for source in ("203.0.113.1", "203.0.113.2", "203.0.113.1"):
            await api.client.get(INCIDENTS, headers={"X-Forwarded-For": source})
        clock.advance(minutes=1)
        await api.client.get(INCIDENTS, headers={"X-Forwarded-For": "::ffff:203.0.113.1"})
        await flush(api)
        found = select(audit.c.address, audit.c.details["minute"].as_string(), audit.c.count)
        rows = await api.services.database.read(lambda connection: connection.execute(found).all())
        first, second = "2026-11-21T12:00:00.000Z", "2026-11-21T12:01:00.000Z"
        assert set(map(tuple, rows)) == {
            ("203.0.113.1", first, 2),
            ("203.0.113.2", first, 1),
            ("203.0.113.1", second, 1),
        }


async def test_what_was_counted_is_written_when_the_service_stops(api, admin):
    await api.client.get(INCIDENTS)
    await api.door.finish()
    [entry] = await admin.audited(action="refused")
    assert (entry["actor"], entry["target"], entry["position"]) == ("", None, 1)


async def test_what_is_no_refusal_is_not_counted(api, admin):
    headers = await api.reader()
    for path in (INCIDENTS, f"{INCIDENTS}/1", f"{INCIDENTS}?limit=0", "/nothing"):
        await api.client.get(path, headers=headers)
    await flush(api)
    assert await admin.audited() == []
