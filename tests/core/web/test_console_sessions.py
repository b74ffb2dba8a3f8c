"""Console sessions of all people: listed and ended by admins alone, with audit entries."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tocsin.credentials import (
    ConsoleRole,
    ConsoleSession,
    SessionOrigin,
    begin_session,
    find_session,
)

PATH = "/api/admin/console-sessions"
on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture
def begin(api, clock):
    """Sign a person in, and return the secret of the cookie."""

    async def begin(principal: str, role=ConsoleRole.ANALYST, hours: float = 8) -> str:
        clock.advance(seconds=1)
        now = clock.now()
        session = ConsoleSession(
            principal=principal,
            name=principal.partition(":")[2],
            role=role,
            expires_at=now + timedelta(hours=hours),
            origin=SessionOrigin("192.0.2.10", "Firefox"),
            sealed_grant="a sealed grant",
        )
        return (await api.services.database.write(begin_session, session, now))[0]

    return begin


@pytest.fixture
def is_signed_in(api, clock):
    async def is_signed_in(secret: str) -> bool:
        found = await api.services.database.read(find_session, secret, clock.now())
        return found is not None

    return is_signed_in


async def load(admin, **query) -> list[dict]:
    answer = await admin.read(PATH, **query)
    return answer["console_sessions"]


async def test_sessions_are_listed_without_secrets(admin, begin, clock):
    secret = await begin("oidc:00u1")
    await begin("admin:ana", ConsoleRole.ADMIN)
    first, second = await load(admin)
    assert (first["principal"], first["role"]) == ("admin:ana", "admin")
    assert second | {"id": ""} == {
        "id": "",
        "principal": "oidc:00u1",
        "name": "00u1",
        "role": "analyst",
        "begun_at": "2026-11-21T12:00:01.000Z",
        "used_at": "2026-11-21T12:00:01.000Z",
        "expires_at": "2026-11-21T20:00:01.000Z",
        "address": "192.0.2.10",
        "browser": "Firefox",
    }
    assert secret not in str(await load(admin))
    assert [each["principal"] for each in await load(admin, principal="oidc:00u1")] == ["oidc:00u1"]
    await begin("oidc:00u2", hours=0.01)
    assert len(await load(admin)) == 3
    clock.advance(minutes=1)
    assert len(await load(admin)) == 2


@on_sqlite
async def test_the_list_has_pages(admin, begin):
    for number in range(5):
        await begin(f"oidc:{number}")
    found, query = [], {"limit": 2}
    while True:
        page = await admin.read(PATH, **query)
        found += [each["principal"] for each in page["console_sessions"]]
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]
    assert found == [f"oidc:{number}" for number in (4, 3, 2, 1, 0)]


async def test_an_admin_ends_one_session_with_an_audit_entry(admin, begin, is_signed_in):
    ended, kept = await begin("oidc:00u1"), await begin("oidc:00u1")
    [_, session] = await load(admin)
    assert await admin.ask("DELETE", f"{PATH}/{session['id']}") == {"ended": 1}
    assert (await is_signed_in(ended), await is_signed_in(kept)) == (False, True)
    [entry] = (await admin.read("/api/admin/audit", action="console.session-end"))["entries"]
    assert entry["target"] == "oidc:00u1"
    assert entry["details"] == {"reason": "ended by an admin", "sessions": 1}
    response = await admin.send("DELETE", f"{PATH}/{session['id']}")
    assert response.status == 404


@on_sqlite
async def test_an_admin_ends_all_sessions_of_one_person(admin, begin, is_signed_in):
    hers = [await begin("oidc:00u1") for _ in range(3)]
    his = await begin("oidc:00u10")
    assert await admin.ask("DELETE", f"{PATH}?principal=oidc:00u1") == {"ended": 3}
    assert [await is_signed_in(secret) for secret in (*hers, his)] == [False] * 3 + [True]
    assert await admin.ask("DELETE", f"{PATH}?principal=oidc:00u1") == {"ended": 0}
    response = await admin.send("DELETE", PATH)
    assert response.status == 422


@on_sqlite
async def test_expired_sessions_are_not_counted_as_ended(admin, begin, clock):
    await begin("oidc:00u1", hours=0.01)
    clock.advance(minutes=1)
    assert await admin.ask("DELETE", f"{PATH}?principal=oidc:00u1") == {"ended": 0}
    assert (await admin.read("/api/admin/audit", action="console.session-end"))["entries"] == []


@on_sqlite
async def test_others_see_and_end_nothing(api, analyst, begin, is_signed_in):
    secret = await begin("admin:ana")
    for method in ("GET", "DELETE"):
        response = await analyst.send(method, f"{PATH}?principal=admin:ana")
        assert response.status in (401, 403)
    assert await is_signed_in(secret)
