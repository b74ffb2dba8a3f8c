"""Local people, as an admin manages them in the console."""

from __future__ import annotations

import re

import pytest
from sqlalchemy import select

from api_callers import Admin
from api_server import open_api
from console import Person
from passkey_user import PasskeyUser
from tocsin.store.tables import audit

PEOPLE = "/admin/people"
BEN = f"{PEOPLE}/ben"
_FIELD = re.compile(r'<input type="hidden" name="(form_token|once)" value="([^"]+)">')
_CODE = re.compile(r'<code id="value">https://[^<]+/sign-in/new-passkey#([^<]+)</code>')

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


async def issue(person: Person, page: str, action: str, **fields: str) -> str:
    """Send a form that creates a link, and return the code of the link."""
    form = dict(_FIELD.findall(await person.html(page)))
    response = await person.post(action, **form, **fields)
    html = await response.text()
    assert response.status == 200, html
    assert response.headers["Cache-Control"] == "no-store"
    return _CODE.search(html)[1]


async def add(person: Person, name: str = "ben", role: str = "analyst") -> str:
    return await issue(person, PEOPLE, PEOPLE, name=name, role=role, expires_in_hours="2")


@pytest.fixture
async def ben(api, person) -> PasskeyUser:
    """A person who was added on the page and has signed in."""
    user = PasskeyUser(api)
    assert (await user.enroll(await add(person), label="Laptop")).status == 303
    return user


async def test_without_people_the_page_says_the_next_step(person):
    assert "No people yet. Add a person" in await person.text(PEOPLE)
    assert f'href="{PEOPLE}"' in await person.html("/")


async def test_a_base_url_without_passkeys_is_said_instead_of_the_form(database, clock):
    async with open_api(database, clock, base_url="https://192.0.2.7") as api:
        person = Person(api)
        await person.sign_in()
        text = await person.text(PEOPLE)
    assert "Passkeys do not work at https://192.0.2.7, which has no host name" in text
    assert "change the base URL" in text
    assert "New person" not in text


async def test_a_link_is_shown_once_and_signs_in(api, person):
    code = await add(person)
    assert code not in await person.html(PEOPLE)
    waiting = await person.text(PEOPLE)
    assert "ben analyst active 0 never unused, expires on" in waiting
    ben = PasskeyUser(api)
    assert (await ben.enroll(code)).status == 303
    used = await person.html(PEOPLE)
    assert re.search(r'data-label="Last sign-in"><time', used)
    assert "unused" not in used


async def test_a_double_click_adds_one_person(person):
    form = dict(_FIELD.findall(await person.html(PEOPLE))) | {"name": "ben", "role": "analyst"}
    assert (await person.post(PEOPLE, **form)).status == 200
    again = await person.post(PEOPLE, **form)
    assert (again.status, "returns only once" in await again.text()) == (409, True)


async def test_a_wrong_form_keeps_its_input_and_says_what_is_right(person):
    await add(person)
    taken = await person.submit(PEOPLE, PEOPLE, 409, name="ben", role="operator")
    assert "ben" in taken
    token = dict(_FIELD.findall(await person.html(PEOPLE)))
    wrong = await person.post(
        PEOPLE, **token, name="Ana<b>", role="operator", expires_in_hours="169"
    )
    html = await wrong.text()
    assert wrong.status == 422
    assert 'value="Ana&lt;b&gt;"' in html
    assert 'value="operator" selected' in html
    assert "expires_in_hours" in html


async def test_another_link_replaces_the_first(api, person):
    first = await add(person)
    second = await issue(person, BEN, f"{BEN}/link", expires_in_hours="1")
    assert (await PasskeyUser(api).begin("/sign-in/new-passkey", code=first)).status == 401
    assert (await PasskeyUser(api).enroll(second)).status == 303


async def test_a_role_is_changed_and_ends_the_sessions(person, ben):
    text = await person.submit(BEN, f"{BEN}/role", role="viewer")
    assert "Role saved" in text
    assert "Role viewer" in text
    assert await ben.status() == 303
    await ben.sign_in()
    assert await ben.status() == 200


async def test_a_person_is_disabled_and_enabled(person, ben):
    text = await person.submit(BEN, f"{BEN}/disable")
    assert "Disabled people cannot use links" in text
    assert (await ben.sign_in()).status == 401
    await person.submit(BEN, f"{BEN}/enable")
    assert (await ben.sign_in()).status == 303


async def test_a_passkey_is_deleted(person, ben):
    [action] = re.findall(rf'action="({BEN}/passkeys/[^"]+/delete)"', await person.html(BEN))
    text = await person.submit(BEN, action)
    assert "Create a link, and send it to the person" in text
    assert (await ben.sign_in()).status == 401


async def test_a_person_is_deleted_with_what_they_had(api, person, ben):
    text = await person.submit(BEN, f"{BEN}/delete")
    assert "Person deleted" in text
    assert "No people yet" in text
    assert (await ben.status(), (await ben.sign_in()).status) == (303, 401)
    await person.text(BEN, 404)
    query = select(audit.c.action).where(audit.c.target == "person:ben").order_by(audit.c.id)
    actions = await api.services.database.read(lambda c: list(c.scalars(query)))
    assert actions == ["person.create", "person.delete"]


async def test_an_admin_sees_which_person_they_are(api, person):
    ana = PasskeyUser(api)
    await ana.enroll(await add(person, "ana", "admin"))
    own = Person(api, ana.cookie)
    assert "This is your own account." in await own.text(f"{PEOPLE}/ana")
    await own.submit(f"{PEOPLE}/ana", f"{PEOPLE}/ana/role", 303, role="viewer")
    assert await ana.status() == 303


async def test_people_are_paged(api, person):
    admin = Admin(api, await api.admin())
    for number in range(51):
        body = {"name": f"p{number:02}", "role": "viewer"}
        await admin.ask("POST", "/api/admin/people", 201, json=body)
    html = await person.html(PEOPLE)
    following = re.search(r'href="(/admin/people\?cursor=[^"]+)"', html)[1]
    assert (f"{PEOPLE}/p50" in html, f"{PEOPLE}/p50" in await person.html(following)) == (
        False,
        True,
    )


async def test_an_old_session_gives_nobody_access(person, ben, clock):
    form = dict(_FIELD.findall(await person.html(BEN))) | {"role": "admin", "name": "eve"}
    clock.advance(minutes=15, seconds=1)
    for action in (PEOPLE, f"{BEN}/link", f"{BEN}/role", f"{BEN}/enable"):
        response = await person.post(action, **form)
        assert (response.status, "sign in again" in await response.text()) == (403, True)
    assert "New person" not in await person.text(PEOPLE)
    assert "Save role" not in await person.text(BEN)
    await person.submit(BEN, f"{BEN}/disable")
    await person.submit(BEN, f"{BEN}/delete")


@pytest.mark.parametrize("role", ["viewer", "auditor", "operator"])
async def test_only_admins_see_and_change_people(api, person, role):
    await add(person)
    other = Person(api)
    await other.sign_in(role)
    assert f"but you have the {role} role." in await other.text(PEOPLE, 403)
    form = dict(_FIELD.findall(await other.html("/")))
    assert PEOPLE not in await other.html("/")
    for action in ("role", "link", "disable", "delete"):
        assert (await other.post(f"{BEN}/{action}", **form, role="admin")).status == 403
