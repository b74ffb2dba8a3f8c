"""A person's own passkeys: what the page shows and changes."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from api_callers import Admin
from api_server import Api
from console import Person
from passkey_user import PasskeyUser, issue_code
from tocsin.store.tables import audit, passkeys

PAGE = "/my-passkeys"
pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture
async def ben(api: Api) -> PasskeyUser:
    """An analyst with a passkey, who has signed in with it."""
    user = PasskeyUser(api)
    code = await issue_code(Admin(api, await api.admin()))
    assert (await user.enroll(code, label="Laptop")).status == 303
    return user


def at_the_page(user: PasskeyUser) -> Person:
    return Person(user.api, user.cookie)


async def read_form_token(user: PasskeyUser) -> str:
    return (await at_the_page(user).html(PAGE)).partition('form_token" value="')[2][:64]


async def add(user: PasskeyUser, device: PasskeyUser, **fields: str):
    """Create a passkey on another device in the session of the user."""
    headers = {"Cookie": user.cookie}
    fields |= {"form_token": await read_form_token(user)}
    begun = await user.api.client.post(f"{PAGE}/options", data=fields, headers=headers)
    if begun.status != 200:
        return begun
    cookie = begun.headers["Set-Cookie"].partition(";")[0]
    fields |= {"credential": device.device.create(await begun.json())}
    headers = {"Cookie": f"{user.cookie}; {cookie}"}
    return await user.api.client.post(
        f"{PAGE}/new", data=fields, headers=headers, allow_redirects=False
    )


async def read_ids(api: Api) -> list[str]:
    query = select(passkeys.c.id).order_by(passkeys.c.id)
    return await api.services.database.read(lambda connection: list(connection.scalars(query)))


async def test_another_passkey_is_added_and_signs_in(api, ben):
    phone = PasskeyUser(api)
    response = await add(ben, phone, label="Phone")
    assert (response.status, response.headers["Location"]) == (303, PAGE)
    html = await at_the_page(ben).html(PAGE)
    assert ('value="Laptop"' in html, 'value="Phone"' in html) == (True, True)
    assert (await phone.sign_in()).status == 303
    assert (await add(ben, phone, label="Phone")).status == 409  # it is known


async def test_an_old_session_adds_no_passkey(api, ben, clock):
    clock.advance(minutes=15, seconds=1)
    response = await add(ben, PasskeyUser(api))
    assert response.status == 403
    assert "sign in again" in (await response.json())["detail"]
    assert "sign out and sign in again" in await at_the_page(ben).text(PAGE)
    await ben.sign_in()
    assert (await add(ben, PasskeyUser(api))).status == 303


async def test_a_passkey_is_renamed_and_deleted_with_the_other_sessions(api, ben):
    phone = PasskeyUser(api)
    await add(ben, phone)
    await phone.sign_in()
    [laptop, _] = await read_ids(api)
    page = at_the_page(phone)
    html = await page.submit(PAGE, PAGE, passkey=laptop, label="Old laptop")
    assert "Your passkeys 2" in html
    assert 'value="Old laptop"' in await page.html(PAGE)
    text = await page.submit(PAGE, PAGE, passkey=laptop)
    assert "Your passkeys 1" in text
    assert "You cannot delete your last passkey" in await page.html(PAGE)
    assert (await phone.status(), await ben.status()) == (200, 303)
    assert (await ben.sign_in()).status == 401
    query = select(audit.c.action, audit.c.actor).where(audit.c.action.startswith("passkey."))
    entries = await api.services.database.read(
        lambda c: c.execute(query.order_by(audit.c.id)).all()
    )
    assert [entry.action for entry in entries][2:] == ["passkey.rename", "passkey.delete"]
    assert {entry.actor for entry in entries} == {"person:ben"}


async def test_the_last_passkey_stays(api, ben):
    [laptop], token = await read_ids(api), await read_form_token(ben)
    response = await at_the_page(ben).post(PAGE, passkey=laptop, form_token=token)
    assert response.status == 409
    assert "This is your last passkey" in await response.text()
    assert (await ben.sign_in()).status == 303


async def test_nobody_changes_the_passkeys_of_others(api, ben):
    eve = PasskeyUser(api)
    await eve.enroll(await issue_code(Admin(api, await api.admin()), "eve"))
    [bens, _] = await read_ids(api)
    for fields in ({}, {"label": "Mine"}):
        await at_the_page(eve).submit(PAGE, PAGE, 404, passkey=bens, **fields)
    response = await at_the_page(eve).post(PAGE, passkey=bens, form_token="0" * 64)
    assert response.status == 403
    assert (await ben.sign_in()).status == 303


async def test_others_than_people_with_passkeys_have_none(api, ben):
    admin = Person(api)
    await admin.sign_in()
    assert "You did not sign in with a passkey" in await admin.text(PAGE)
    token = (await admin.html("/")).partition('form_token" value="')[2][:64]
    for path in (PAGE, f"{PAGE}/options"):
        assert (await admin.post(path, passkey="x", form_token=token)).status == 403
    assert (await api.client.post(f"{PAGE}/options", data={"": ""})).status == 401
