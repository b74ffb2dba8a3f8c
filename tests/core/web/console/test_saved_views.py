"""Views of the incident list that each person saves, and finds in every browser."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from html import unescape

from api_callers import Admin
from console import Person
from passkey_user import PasskeyUser, issue_code
from tocsin.credentials import (
    ConsoleRole,
    ConsoleSession,
    begin_session,
    list_saved_views,
    save_view,
)
from tocsin.store import DatabaseFailure, DatabaseFault

HOSTILE = "<script>alert(1)</script> \"' {{ 7*7 }}"[:40]
PATH = "/incidents/views"
SEVERE = {"severity": "High", "columns": "tags"}


async def find_token(person: Person) -> str:
    html = await person.html("/incidents?severity=High")
    [token] = set(re.findall(r'name="form_token" value="([^"]+)"', html))
    return token


async def save(person: Person, name: str, query: str, status: int = 303) -> str:
    """Save a view, and return what the answer says."""
    response = await person.post(PATH, name=name, query=query, form_token=await find_token(person))
    assert response.status == status, await response.text()
    return response.headers["Location"] if status == 303 else await response.text()


async def read_views(person: Person) -> dict[str, str]:
    """Return the addresses of the views on the page, by their names."""
    html = await person.html("/incidents")
    found = re.findall(r'class="saved"><a href="([^"]+)"[^>]*><bdi>([^<]*)<', html)
    return {unescape(name): unescape(place) for place, name in found}


async def sign_in_as(api, principal: str, role: ConsoleRole = ConsoleRole.VIEWER) -> Person:
    """Return somebody with a session of a principal."""
    now = api.services.clock.now()
    session = ConsoleSession(principal, "ana", role, now + timedelta(hours=1))
    secret, _ = await api.services.database.write(begin_session, session, now)
    return Person(api, f"__Host-tocsin={secret}")


async def test_a_view_is_there_in_every_browser_and_after_each_sign_in(api, person):
    assert await save(person, HOSTILE, "severity=High&columns=tags") == (
        "/incidents?severity=High&columns=tags&message=view-saved"
    )
    other = Person(api)
    await other.sign_in()
    assert await read_views(other) == {HOSTILE: "/incidents?severity=High&columns=tags"}
    assert "<script>alert" not in await other.html("/incidents")
    await other.post("/sign-out", form_token=await find_token(other))
    await other.sign_in()
    assert HOSTILE in await read_views(other)
    await save(other, HOSTILE, "severity=Low")
    assert await read_views(person) == {HOSTILE: "/incidents?severity=Low"}
    await save(person, HOSTILE, "")
    assert await read_views(other) == {}


async def test_people_of_different_kinds_with_equal_names_have_their_own_views(api, person):
    ana = PasskeyUser(api)
    await ana.enroll(await issue_code(Admin(api, await api.admin()), "ana"))
    people = [person, Person(api, ana.cookie), await sign_in_as(api, "oidc:ana")]
    for number, each in enumerate(people):
        await save(each, "mine", f"title=n{number}")
    for number, each in enumerate(people):
        assert await read_views(each) == {"mine": f"/incidents?title=n{number}"}


async def test_a_viewer_saves_views(viewer):
    await save(viewer, "mine", "assignee=ana")
    assert list(await read_views(viewer)) == ["mine"]


async def test_a_view_needs_a_name_room_and_the_own_form(person):
    token = await find_token(person)
    longest = "y" * (2_000 - len('{"title":""}'))
    for fields, status, words in (
        ({"name": "", "query": "a=b"}, 422, "a name of up to 40 characters"),
        ({"name": "x" * 41, "query": "a=b"}, 422, "a name of up to 40 characters"),
        ({"name": "x", "query": f"title=y{longest}"}, 422, "have 2,001 characters"),
        (
            {"name": "x", "query": "a=b", "form_token": "0" * 64},
            403,
            "this form came from the console",
        ),
    ):
        response = await person.post(PATH, **{"form_token": token, **fields})
        assert response.status == status
        assert words in await response.text()
    assert await read_views(person) == {}
    await save(person, "x" * 40, f"title={longest}")
    await save(person, "nul \0", "title=%00")
    assert set(await read_views(person)) == {"x" * 40, "nul \N{REPLACEMENT CHARACTER}"}
    await save(person, "nul \0", "")
    assert list(await read_views(person)) == ["x" * 40]


async def test_a_person_has_fifty_views_at_most(api, person, clock):
    database, now = api.services.database, clock.now()
    for number in range(49):
        await database.write(save_view, "admin:ana", f"v{number}", SEVERE, now)
    token = await find_token(person)
    saved = [person.post(PATH, name=n, query="a=b", form_token=token) for n in ("x", "y", "z")]
    assert sorted([each.status for each in await asyncio.gather(*saved)]) == [303, 422, 422]
    assert "You have 50 saved views, which is the maximum." in await save(person, "w", "a=b", 422)
    await save(person, "v1", "status=New")
    await save(person, "v2", "")
    await save(person, "w", "a=b")
    views = await read_views(person)
    assert (len(views), views["v1"]) == (50, "/incidents?status=New")


async def test_a_deleted_person_leaves_no_views_to_the_next_with_the_name(api, person):
    admin, ben = Admin(api, await api.admin()), PasskeyUser(api)
    await ben.enroll(await issue_code(admin))
    browser = Person(api, ben.cookie)
    await save(browser, "mine", "assignee=ben")
    await save(person, "mine", "assignee=ana")
    token = await find_token(browser)
    await admin.ask("DELETE", "/api/admin/people/ben")
    database = api.services.database
    assert await database.read(list_saved_views, "person:ben") == {}
    late = await browser.post(PATH, name="late", query="a=b", form_token=token)
    assert late.status == 401
    # as of a node that knew no saved views
    now = api.services.clock.now()
    await database.write(save_view, "person:ben", "old", SEVERE, now)
    next_ben = PasskeyUser(api)
    await next_ben.enroll(await issue_code(admin))
    assert await read_views(Person(api, next_ben.cookie)) == {}
    assert list(await read_views(person)) == ["mine"]


async def test_without_the_database_the_page_says_so(api, person, monkeypatch):
    lookup = api.services.database.lookup

    async def fail(operation, *args):
        if operation is list_saved_views:
            raise DatabaseFailure("lost", DatabaseFault.UNREACHABLE)
        return await lookup(operation, *args)

    monkeypatch.setattr(api.services.database, "lookup", fail)
    assert "The database is unavailable" in await person.text("/incidents", 503)
