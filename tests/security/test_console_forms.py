"""Every form of the console, sent by everybody but an admin from a page of their own session."""

from __future__ import annotations

import re

import pytest
from sqlalchemy import func, select

from console import Person
from tocsin.store.tables import audit
from tocsin.web.console.routes import ACTIONS

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)

PATHS = [*sorted({re.sub(r"{\w+}", "1", action.path) for action in ACTIONS}), "/sign-out"]
TOKEN = re.compile(r'name="form_token" value="([0-9a-f]{64})"')


async def person(api, role: str = "admin") -> Person:
    person = Person(api)
    await person.sign_in(role)
    return person


async def form_token(person: Person) -> str:
    found = TOKEN.search(await person.html("/"))
    assert found is not None
    return found[1]


async def changes(api) -> int:
    counting = select(func.count()).select_from(audit).where(audit.c.action != "console.sign-in")
    return await api.services.database.read(lambda connection: connection.scalar(counting))


async def nobody(api) -> tuple[dict, dict]:
    return {}, {"form_token": "0" * 64}


async def invented_cookie(api) -> tuple[dict, dict]:
    name = (await person(api)).cookie.partition("=")[0]
    return {"Cookie": f"{name}={'A' * 43}"}, {"form_token": "0" * 64}


async def no_form_token(api) -> tuple[dict, dict]:
    return {"Cookie": (await person(api)).cookie}, {}


async def invented_form_token(api) -> tuple[dict, dict]:
    return {"Cookie": (await person(api)).cookie}, {"form_token": "0" * 64}


async def form_token_of_another_session(api) -> tuple[dict, dict]:
    other = await form_token(await person(api))
    return {"Cookie": (await person(api)).cookie}, {"form_token": other}


async def other_site(api) -> tuple[dict, dict]:
    own = await person(api)
    headers = {"Cookie": own.cookie, "Sec-Fetch-Site": "cross-site"}
    return headers, {"form_token": await form_token(own)}


async def neighbor_site(api) -> tuple[dict, dict]:
    own = await person(api)
    headers = {"Cookie": own.cookie, "Sec-Fetch-Site": "same-site"}
    return headers, {"form_token": await form_token(own)}


async def other_host(api) -> tuple[dict, dict]:
    own = await person(api)
    headers = {"Cookie": own.cookie, "Host": "evil.example"}
    return headers, {"form_token": await form_token(own)}


async def ended_session(api) -> tuple[dict, dict]:
    own = await person(api)
    token = await form_token(own)
    assert (await own.post("/sign-out", form_token=token)).status == 303
    return {"Cookie": own.cookie}, {"form_token": token}


async def api_credential(api) -> tuple[dict, dict]:
    return await api.admin(), {}


WRONG = (
    nobody,
    invented_cookie,
    no_form_token,
    invented_form_token,
    form_token_of_another_session,
    other_site,
    neighbor_site,
    other_host,
    ended_session,
    api_credential,
)


@pytest.mark.parametrize("sender", WRONG, ids=lambda sender: sender.__name__)
async def test_no_form_is_taken_from(api, sender, record_property):
    headers, form = await sender(api)
    before = await changes(api)
    taken = []
    for path in PATHS:
        response = await api.client.post(path, data=form, headers=headers, allow_redirects=False)
        if response.status not in {401, 403, 421}:
            taken.append((path, response.status))
    record_property("cases", len(PATHS))
    assert taken == []
    assert await changes(api) == before


async def test_a_viewer_changes_nothing(api, record_property):
    viewer = await person(api, "viewer")
    token = await form_token(viewer)
    for path in PATHS[:-1]:
        assert (await viewer.post(path, form_token=token)).status == 403, path
    record_property("cases", len(PATHS) - 1)
    assert await changes(api) == 0
