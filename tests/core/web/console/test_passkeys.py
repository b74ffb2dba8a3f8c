"""Passkeys of people: links, sign-in, and what ends both."""

from __future__ import annotations

import asyncio

import orjson
import pytest
import structlog
from sqlalchemy import func, select

from api_callers import Admin
from api_server import Api, open_api
from passkey_user import LINK, SIGN_IN, PasskeyUser, issue_code
from software_authenticator import PRESENT, SoftwareAuthenticator
from tocsin.store.tables import audit, console_sessions, passkey_links, passkeys, used_challenges
from tocsin.web.rate_limits import CEREMONY_QUOTA

PEOPLE = "/api/admin/people"
on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture
async def admin(api: Api) -> Admin:
    return Admin(api, await api.admin())


@pytest.fixture
async def ben(api: Api, admin: Admin) -> PasskeyUser:
    """An analyst with a passkey, who has signed in with the link."""
    user = PasskeyUser(api)
    response = await user.enroll(await issue_code(admin), label="Laptop")
    assert response.status == 303, await response.text()
    return user


async def count(api: Api, table) -> int:
    query = select(func.count()).select_from(table)
    return await api.services.database.read(lambda connection: connection.scalar(query))


async def read_audit(api: Api, action: str) -> list:
    query = select(audit).where(audit.c.action == action).order_by(audit.c.id)
    return await api.services.database.read(lambda connection: connection.execute(query).all())


async def test_a_link_creates_a_passkey_and_signs_in_once(api, admin):
    code, user = await issue_code(admin), PasskeyUser(api)
    first = await user.enroll(code, label="Laptop")
    assert (first.status, first.headers["Location"]) == (303, "/")
    assert await user.status() == 200
    again = await PasskeyUser(api).begin(LINK, code=code)
    assert again.status == 401
    assert "tocsin people link" in (await again.json())["detail"]
    [passkey] = (await admin.read(f"{PEOPLE}/ben"))["passkeys"]
    assert passkey["label"] == "Laptop"
    assert passkey["last_used_at"] == passkey["created_at"]
    [entry] = await read_audit(api, "passkey.create")
    assert (entry.actor, entry.target) == ("person:ben", f"passkey:{passkey['id']}")
    assert entry.details == {"label": "Laptop", "method": "link"}


async def test_a_passkey_signs_in_with_the_role_of_its_person(api, admin, ben):
    response = await ben.sign_in(next="/schedules")
    assert (response.status, response.headers["Location"]) == (303, "/schedules")
    page = await api.client.get("/", headers={"Cookie": ben.cookie})
    assert "person:ben" in await page.text()
    assert await ben.status("/admin/api-keys") == 403
    [passkey] = (await admin.read(f"{PEOPLE}/ben"))["passkeys"]
    assert passkey["last_used_at"] is not None
    [_, entry] = await read_audit(api, "console.sign-in")
    assert entry.actor == "person:ben"
    assert entry.details == {"role": "analyst", "method": "passkey", "passkey": passkey["id"]}


async def test_the_sessions_page_lists_those_of_the_person(api, ben):
    await ben.sign_in()
    page = await api.client.get("/my-sessions", headers={"Cookie": ben.cookie})
    assert "2</span>" in (await page.text()).partition("</h1>")[0]


async def test_two_with_one_link_create_one_passkey(api, admin):
    code = await issue_code(admin)
    users = [PasskeyUser(api) for _ in range(4)]
    for user in users:
        await user.begin(LINK, code=code)
    responses = await asyncio.gather(*(user.finish(code) for user in users))
    assert sorted(response.status for response in responses) == [303, 401, 401, 401]
    assert await count(api, passkeys) == 1


async def test_a_challenge_is_used_once(api, ben, clock):
    await ben.begin(SIGN_IN)
    credential = ben.device.sign(ben.options)
    responses = await asyncio.gather(*(ben.send(SIGN_IN, credential=credential) for _ in range(4)))
    assert sorted(response.status for response in responses) == [303, 401, 401, 401]
    reasons = {entry.details["reason"] for entry in await read_audit(api, "passkey.refuse")}
    assert reasons == {"the challenge was already used"}
    clock.advance(minutes=10)
    assert (await ben.sign_in()).status == 303
    assert await count(api, used_challenges) == 1  # the others have expired


async def test_a_challenge_is_used_once_on_nodes_whose_clocks_differ(api, admin, clock):
    user = PasskeyUser(api, SoftwareAuthenticator(step=0))
    await user.enroll(await issue_code(admin))
    clock.advance(seconds=59)  # as on a node that is ahead, within the tolerance of sealed data
    await user.begin(SIGN_IN)
    clock.advance(seconds=-59)
    credential = user.device.sign(user.options)
    assert (await user.send(SIGN_IN, credential=credential)).status == 303
    clock.advance(minutes=5, seconds=1)
    assert (await user.send(SIGN_IN, credential=credential)).status == 401


async def test_nodes_share_challenges_and_their_uses(nodes):
    first, second = nodes
    ben = PasskeyUser(first)
    await ben.enroll(await issue_code(Admin(first, await first.admin())))
    await ben.begin(SIGN_IN)
    credential = ben.device.sign(ben.options)
    statuses = []
    for api in (second, first):
        ben.api = api
        statuses.append((await ben.send(SIGN_IN, credential=credential)).status)
    assert statuses == [303, 401]


async def test_a_counter_that_goes_back_is_refused_and_audited(api, ben):
    await ben.sign_in()
    ben.device.counter -= 1
    response = await ben.sign_in()
    assert (response.status, ben.cookie) == (401, "")
    assert "may have been copied" in await response.text()
    [entry] = await read_audit(api, "passkey.refuse")
    assert (entry.actor, "sign counter" in entry.details["reason"]) == ("person:ben", True)
    ben.device.counter += 1  # the original, which counts on
    assert (await ben.sign_in()).status == 303


async def test_a_device_without_a_counter_signs_in(api, admin):
    user = PasskeyUser(api, SoftwareAuthenticator(step=0))
    await user.enroll(await issue_code(admin))
    for _ in range(2):
        assert (await user.sign_in()).status == 303


@pytest.mark.parametrize("change", [{"enabled": False}, {"role": "viewer"}, None, "passkey"])
async def test_a_change_ends_the_sessions_at_once(api, admin, ben, change):
    await ben.sign_in()
    person, session = f"{PEOPLE}/ben", ben.cookie
    if change == "passkey":
        [passkey] = (await admin.read(person))["passkeys"]
        await admin.ask("DELETE", f"{person}/passkeys/{passkey['id']}")
    elif change is None:
        await admin.ask("DELETE", person)
    else:
        await admin.ask("PATCH", person, json=change)
    assert await ben.status() == 303
    assert await count(api, console_sessions) == 0
    can_sign_in = change == {"role": "viewer"}
    assert (await ben.sign_in()).status == (303 if can_sign_in else 401)
    assert session != ben.cookie


async def test_a_disabled_person_is_refused_until_enabled(api, admin, ben):
    await admin.ask("PATCH", f"{PEOPLE}/ben", json={"enabled": False})
    response = await ben.sign_in()
    assert "the person is disabled" in await response.text()
    [entry] = await read_audit(api, "passkey.refuse")
    assert entry.details == {"reason": "the person is disabled"}
    await admin.ask("PATCH", f"{PEOPLE}/ben", json={"enabled": True})
    assert (await ben.sign_in()).status == 303


async def test_a_link_expires_and_a_new_one_replaces_it(api, admin, clock):
    path = f"{PEOPLE}/ben/passkey-link"
    first = await issue_code(admin)
    second = (await admin.ask("POST", path, 201))["link"].partition("#")[2]
    assert (await PasskeyUser(api).begin(LINK, code=first)).status == 401
    clock.advance(hours=24)
    admin.headers = await api.admin()
    assert (await PasskeyUser(api).begin(LINK, code=second)).status == 401
    body = {"expires_in_hours": 168}
    third = (await admin.ask("POST", path, 201, json=body))["link"].partition("#")[2]
    clock.advance(hours=167)
    assert (await PasskeyUser(api).enroll(third)).status == 303
    assert await count(api, passkey_links) == 0


async def test_a_disabled_person_has_no_link(api, admin):
    code = await issue_code(admin)
    await admin.ask("PATCH", f"{PEOPLE}/ben", json={"enabled": False})
    await admin.ask("POST", f"{PEOPLE}/ben/passkey-link", 409)
    await admin.ask("PATCH", f"{PEOPLE}/ben", json={"enabled": True})
    assert (await PasskeyUser(api).begin(LINK, code=code)).status == 401


async def test_revoking_all_ends_links_and_sessions(api, admin, ben):
    code = await issue_code(admin, "eve")
    await api.services.database.write(api.services.admins.revoke_all)
    assert await ben.status() == 303
    assert (await PasskeyUser(api).begin(LINK, code=code)).status == 401
    assert (await ben.sign_in()).status == 303  # people and passkeys stay


@on_sqlite
@pytest.mark.parametrize(
    "attack",
    [
        {"origin": "https://evil.example"},
        {"origin": "https://sub.tocsin.example"},
        {"origin": "http://tocsin.example"},
        {"rp_id": "evil.example"},
        {"flags": PRESENT},
        {"flags": 0},
        {"client_data": {"type": "webauthn.create"}},
        {"client_data": {"challenge": "A" * 43}},
        {"client_data": {"crossOrigin": True}},
        {"client_data": {"topOrigin": "https://evil.example"}},
        {"user_handle": "cHNuXzE"},
        {"key": SoftwareAuthenticator().key},
        {"credential_id": b"unknown"},
    ],
    ids=lambda attack: next(iter(attack)),
)
async def test_a_wrong_response_begins_nothing(api, ben, attack):
    sessions = await count(api, console_sessions)
    for name, value in attack.items():
        setattr(ben.device, name, value)
    assert (await ben.sign_in()).status == 401
    assert (await count(api, console_sessions), await count(api, used_challenges)) == (sessions, 1)


@on_sqlite
@pytest.mark.parametrize(
    "attack",
    [
        {"origin": "https://evil.example"},
        {"rp_id": "evil.example"},
        {"flags": PRESENT},
        {"algorithm": -65_535},
        {"client_data": {"type": "webauthn.get"}},
        {"client_data": {"challenge": "A" * 43}},
        {"client_data": {"crossOrigin": True}},
    ],
    ids=lambda attack: next(iter(attack)),
)
async def test_a_wrong_passkey_is_not_created_and_the_link_stays(api, admin, attack):
    code = await issue_code(admin)
    assert (await PasskeyUser(api, SoftwareAuthenticator(**attack)).enroll(code)).status == 401
    assert await count(api, passkeys) == 0
    assert (await PasskeyUser(api).enroll(code)).status == 303


@on_sqlite
async def test_a_challenge_is_for_one_browser_one_purpose_and_five_minutes(api, admin, ben, clock):
    await ben.begin(SIGN_IN)
    credential = ben.device.sign(ben.options)
    sign_in, ben.ceremony = ben.ceremony, ""
    assert (await ben.send(SIGN_IN, credential=credential)).status == 401
    code, user = await issue_code(admin, "eve"), PasskeyUser(api)
    await user.begin(LINK, code=code)
    enrollment = user.ceremony
    user.ceremony = sign_in  # of another purpose
    created = user.device.create(user.options | {"challenge": ben.options["challenge"]})
    assert (await user.send(LINK, code=code, credential=created)).status == 401
    user.ceremony = enrollment  # of another person
    other = await issue_code(admin, "mia")
    created = user.device.create(user.options)
    assert (await user.send(LINK, code=other, credential=created)).status == 401
    ben.ceremony = enrollment
    signed = ben.device.sign(user.options)
    assert (await ben.send(SIGN_IN, credential=signed)).status == 401
    ben.ceremony = sign_in
    clock.advance(minutes=5, seconds=1)
    assert (await ben.send(SIGN_IN, credential=credential)).status == 401


@on_sqlite
@pytest.mark.parametrize(
    "answer",
    ["nonsense", "[]", "{}", '{"rawId": 7}', '{"rawId": "\\u0000"}', "[" * 5_000, "x" * 20_000],
    ids=lambda answer: answer[:8],
)
async def test_what_is_no_response_of_a_browser_is_refused(api, admin, ben, answer):
    await ben.begin(SIGN_IN)
    assert (await ben.send(SIGN_IN, credential=answer)).status == 401
    code = await issue_code(admin, "eve")
    await ben.begin(LINK, code=code)
    assert (await ben.send(LINK, code=code, credential=answer)).status == 401


@on_sqlite
async def test_without_scripts_the_page_says_what_to_do(api, admin, ben):
    code = await issue_code(admin, "eve")
    for path, fields in ((SIGN_IN, {}), (LINK, {"code": code})):
        response = await ben.send(path, **fields)
        assert response.status == 422
        assert "allow JavaScript for this site" in await response.text()
    page = await (await api.client.get("/sign-in")).text()
    assert "<noscript>" in page


@on_sqlite
async def test_a_known_passkey_is_excluded_and_not_stored_twice(api, admin, ben):
    link = await admin.ask("POST", f"{PEOPLE}/ben/passkey-link", 201)
    code = link["link"].partition("#")[2]
    response = await ben.enroll(code)
    [known] = ben.options["excludeCredentials"]
    assert known["id"] == orjson.loads(ben.device.create(ben.options))["rawId"]
    assert response.status == 409
    assert "already registered" in await response.text()
    assert (await PasskeyUser(api).enroll(code)).status == 303  # the link was not used up


@on_sqlite
async def test_the_sign_in_page_offers_passkeys_to_people_who_have_access(api, admin):
    async def read() -> str:
        return await (await api.client.get("/sign-in")).text()

    assert "passkey" not in await read()
    await issue_code(admin)
    assert "Sign in with a passkey" in await read()
    await admin.ask("PATCH", f"{PEOPLE}/ben", json={"enabled": False})
    assert "passkey" not in await read()


@on_sqlite
async def test_another_site_begins_and_ends_no_ceremony(api, admin, ben):
    code = await issue_code(admin, "eve")
    for path in (SIGN_IN, f"{SIGN_IN}/options", LINK, f"{LINK}/options"):
        headers = {"Sec-Fetch-Site": "cross-site"}
        response = await api.client.post(path, data={"code": code}, headers=headers)
        assert response.status == 403, path


@on_sqlite
async def test_the_challenge_is_out_of_the_reach_of_scripts_and_caches(api):
    response = await PasskeyUser(api).begin(SIGN_IN)
    cookie = response.headers["Set-Cookie"]
    for attribute in ("__Host-", "HttpOnly", "Secure", "SameSite=Lax", "Max-Age=300"):
        assert attribute in cookie
    assert response.headers["Cache-Control"] == "no-store"
    assert await count(api, used_challenges) == 0


@on_sqlite
async def test_failures_count_like_every_failed_authentication(database, clock):
    async with open_api(database, clock, auth_failure_limit=5) as api:
        admin = Admin(api, await api.admin())
        code, user = await issue_code(admin), PasskeyUser(api)
        for guess in ("", "nonsense", "ä", "x" * 43, "\x00"):
            assert (await user.begin(LINK, code=guess)).status == 401
        assert (await user.begin(LINK, code=code)).status == 429
        assert (await user.begin(SIGN_IN)).status == 429


@on_sqlite
async def test_a_refused_code_counts_once_in_the_audit_log(api):
    user = PasskeyUser(api)
    assert (await user.begin(LINK, code="nonsense")).status == 401
    assert (await user.send(LINK, code="nonsense", credential="{}")).status == 401
    await api.services.refusals.flush(api.services.database)
    [entry] = await read_audit(api, "refused")
    assert (entry.count, entry.details["reason"]) == (2, "credential refused")


@on_sqlite
async def test_an_address_begins_so_many_sign_ins_a_minute(api, clock):
    user = PasskeyUser(api)
    for _ in range(CEREMONY_QUOTA.burst):
        assert (await user.begin(SIGN_IN)).status == 200
    refused = await user.begin(SIGN_IN)
    assert (refused.status, refused.headers["Retry-After"]) == (429, "1")
    clock.advance(seconds=1)
    assert (await user.begin(SIGN_IN)).status == 200


@on_sqlite
async def test_the_code_is_stored_and_logged_nowhere(api, admin):
    with structlog.testing.capture_logs() as logs:
        code = await issue_code(admin)
        await PasskeyUser(api).enroll(code)
    for table in (passkey_links, audit):
        query = select(table)
        rows = await api.services.database.read(lambda c, query=query: c.execute(query).all())
        assert code not in f"{rows}{logs}"


@on_sqlite
@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://tocsin.example", "which is not encrypted"),
        ("https://192.0.2.7", "which has no host name"),
        ("http://127.0.0.1:8000", "or to http://localhost:8080 for this machine only"),
    ],
)
async def test_a_base_url_without_passkeys_is_refused_with_the_remedy(database, clock, url, reason):
    async with open_api(database, clock, base_url=url, tls_terminated=True) as api:
        admin = Admin(api, await api.admin())
        body = {"name": "ben", "role": "viewer"}
        refused = await admin.ask("POST", PEOPLE, 409, json=body)
        assert reason in refused["detail"]
        page = await api.client.get(LINK)
        assert reason in await page.text()
