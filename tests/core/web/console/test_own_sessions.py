"""Where a person is signed in, and how she ends that."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import select

from console import Person
from tocsin.store.tables import console_sessions
from tocsin.web.console.own_sessions import name_browser

PAGE = "/my-sessions"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
EDGE = "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/140.0 Safari/537.36 Edg/140.0"


async def read_ids(api) -> list[str]:
    query = select(console_sessions.c.id).order_by(console_sessions.c.begun_at)
    return await api.services.database.read(lambda c: list(c.scalars(query)))


async def is_signed_in(person: Person) -> bool:
    return (await person.get("/", allow_redirects=False)).status == 200


async def test_a_person_sees_her_sessions_and_ends_one(api, person, clock):
    clock.advance(minutes=1)
    other = Person(api)
    await other.sign_in()
    text = await person.text(PAGE)
    assert "Your sessions 2" in text
    assert "127.0.0.1 2026-11-21 12:01:00 UTC" in text
    assert text.count("this session") == 1
    [_, id_] = await read_ids(api)
    await person.submit(PAGE, PAGE, session=id_)
    assert (await is_signed_in(person), await is_signed_in(other)) == (True, False)
    query = await person.html("/admin/audit")
    assert "console.session-end" in query


async def test_she_ends_all_others_at_once(api, person):
    others = [Person(api) for _ in range(2)]
    for other in others:
        await other.sign_in()
    await person.submit(PAGE, PAGE)
    assert await is_signed_in(person)
    assert not any([await is_signed_in(other) for other in others])
    assert "Your sessions 1" in await person.text(PAGE)


async def test_nobody_ends_the_sessions_of_others(api, person):
    [hers] = await read_ids(api)
    stranger = Person(api)
    issue = api.services.admins.issue
    token = await api.services.database.write(issue, name="ben", expires_in=timedelta(hours=1))
    form = {"token": token, "next": "/"}
    for _ in range(2):  # the page has forms if there are several
        response = await api.client.post("/sign-in", data=form, allow_redirects=False)
    stranger.cookie = response.headers["Set-Cookie"].partition(";")[0]
    await stranger.submit(PAGE, PAGE, session=hers)
    await stranger.submit(PAGE, PAGE)
    assert await is_signed_in(person)


async def test_the_last_use_is_stored_once_in_a_while(api, person, clock):
    clock.advance(minutes=4)
    await person.html("/incidents")
    assert "12:00:00 UTC 2026-11-21 12:00:00 UTC" in await person.text(PAGE)
    clock.advance(minutes=1)
    await person.html("/incidents")
    assert "12:00:00 UTC 2026-11-21 12:05:00 UTC" in await person.text(PAGE)


@pytest.mark.parametrize(
    ("header", "name"),
    [
        (FIREFOX, "Firefox on Linux"),
        (EDGE, "Edge on Windows"),
        ("curl/8.0", "curl/8.0"),
        ("", "unknown"),
        (None, "unknown"),
        ("x" * 300, "x" * 80),
    ],
)
def test_browsers_are_named_as_people_know_them(header, name):
    assert name_browser(header) == name
