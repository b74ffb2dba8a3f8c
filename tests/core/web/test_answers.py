"""What answers have in common: tags, conditions, the forms they come in, and their headers."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict

import pytest
from multidict import CIMultiDict

from api_callers import CLIENTS, GOOD, KEYS, Admin
from api_server import open_api, problem
from incident_rows import add_incidents, change_incident
from tocsin.credentials import Scope
from tocsin.web.context import AccessRole
from tocsin.web.endpoints import ENDPOINTS

on_one_database = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
READS = [endpoint for endpoint in ENDPOINTS if endpoint.method == "GET"]
# What can be read without saying of what
LISTS = [
    endpoint
    for endpoint in READS
    if "{" not in endpoint.path
    and not any(field.is_required() for field in endpoint.query.model_fields.values())
]


async def headers_for(api, endpoint) -> dict[str, str]:
    """Return those of somebody who may call the endpoint."""
    if endpoint.access is AccessRole.ADMIN:
        return await api.admin()
    if endpoint.access is AccessRole.PUBLIC:
        return {}
    return {"X-API-Key": await api.key(*Scope)}


def path_of(endpoint) -> str:
    return re.sub(r"{\w+}", "1", endpoint.path)


def lasting(headers) -> list[tuple[str, str]]:
    """Return the header fields that do not tell one request from the next, in any order."""
    kept = CIMultiDict(headers)
    for name in ("Date", "X-Request-Id", "RateLimit", "Content-Type", "Content-Length"):
        kept.popall(name, None)
    return sorted((name.casefold(), value) for name, value in kept.items())


@on_one_database
async def test_every_read_has_a_tag_and_is_not_sent_again_to_whoever_holds_it(api):
    for endpoint in LISTS:
        headers = await headers_for(api, endpoint)
        full = await api.client.get(endpoint.path, headers=headers)
        assert full.status == 200, endpoint.path
        conditional = headers | {"If-None-Match": full.headers["ETag"]}
        for method in ("GET", "HEAD"):
            held = await api.client.request(method, endpoint.path, headers=conditional)
            assert (held.status, await held.read()) == (304, b""), endpoint.path
            assert lasting(held.headers) == lasting(full.headers), endpoint.path
            assert "Content-Type" not in held.headers


@pytest.fixture
async def item(admin) -> str:
    """The path of something that can change."""
    return f"{KEYS}/{(await admin.create_key())['key_id']}"


@pytest.mark.parametrize(
    "held", ["{}", "W/{}", '"a", {}', '{} , W/"b"', '"a",W/{},"c"', "*", " * ", '"a,b", {}']
)
@on_one_database
async def test_a_tag_matches_weakly_and_in_a_list(admin, item, held):
    tag = (await admin.send("GET", item)).headers["ETag"]
    assert re.fullmatch(r'"[0-9a-f]+"', tag)
    response = await admin.send("GET", item, headers={"If-None-Match": held.format(tag)})
    assert response.status == 304
    assert response.headers["ETag"] == tag


@pytest.mark.parametrize("held", ["", '""', "{bare}", '"{bare}x"', '"*"', "x", "W/"])
@on_one_database
async def test_another_tag_does_not_match(admin, item, held):
    bare = (await admin.send("GET", item)).headers["ETag"].strip('"')
    response = await admin.send("GET", item, headers={"If-None-Match": held.format(bare=bare)})
    assert response.status == 200


@on_one_database
async def test_tags_may_stand_in_several_fields(api, admin, item):
    tag = (await admin.send("GET", item)).headers["ETag"]
    fields = [*admin.headers.items(), ("If-None-Match", '"a"'), ("If-None-Match", tag)]
    assert (await api.client.get(item, headers=fields)).status == 304


async def test_what_has_changed_is_sent_again_under_another_tag(admin, clock, item):
    for path in (KEYS, item):
        clock.advance(minutes=1)
        before = (await admin.send("GET", path)).headers["ETag"]
        await admin.ask("POST", f"{item}/rotate")
        after = await admin.send("GET", path, headers={"If-None-Match": before})
        assert after.status == 200
        assert after.headers["ETag"] != before


async def test_an_incident_is_sent_again_once_it_has_changed(api, clock):
    [number] = await api.services.database.write(add_incidents)
    headers, path = await api.reader(), f"/api/v1/incidents/{number}"
    headers["If-None-Match"] = (await api.client.get(path, headers=headers)).headers["ETag"]
    assert (await api.client.get(path, headers=headers)).status == 304
    await api.services.database.write(change_incident, number, now=clock.now(), title="other")
    assert (await api.client.get(path, headers=headers)).status == 200


@on_one_database
async def test_a_condition_opens_nothing(api, admin, item):
    tag = (await admin.send("GET", item)).headers["ETag"]
    await problem(await api.client.get(item, headers={"If-None-Match": tag}), 401)
    await problem(await api.client.get(item, headers={"If-None-Match": "*"}), 401)
    await problem(await admin.send("GET", f"{KEYS}/x", headers={"If-None-Match": "*"}), 404)


@on_one_database
async def test_what_is_private_is_not_kept_by_caches_on_the_way(admin, item):
    for path in (KEYS, CLIENTS, item):
        cache = (await admin.send("GET", path)).headers["Cache-Control"]
        assert cache == "private, no-cache"


@on_one_database
async def test_head_is_answered_as_get_but_for_the_body(api):
    for endpoint in READS:
        headers = await headers_for(api, endpoint)
        full = await api.client.get(path_of(endpoint), headers=headers)
        head = await api.client.head(path_of(endpoint), headers=headers)
        assert (head.status, await head.read()) == (full.status, b""), endpoint.path
        assert lasting(head.headers) == lasting(full.headers), endpoint.path
        for name in ("Content-Type", "Content-Length"):
            assert head.headers[name] == full.headers[name], endpoint.path


TAKEN = [
    None,
    "*/*",
    "application/json",
    "Application/JSON",
    "application/*",
    "text/html, application/json;q=0.5",
    "text/html,*/*;q=0.1",
    "application/json; charset=utf-8",
    "application/json;q=1.000",
]
NOT_TAKEN = [
    "text/html",
    "application/xml, text/*",
    "application/json;q=0",
    "application/json;q=0, */*",
    "application/*;q=0.0, */*",
    "*/*;q=0",
]


@pytest.mark.parametrize("accept", TAKEN)
@on_one_database
async def test_whoever_takes_json_is_answered(admin, accept):
    headers = {} if accept is None else {"Accept": accept}
    assert (await admin.send("GET", KEYS, headers=headers)).status == 200


@pytest.mark.parametrize("accept", NOT_TAKEN)
@on_one_database
async def test_whoever_does_not_is_told_what_there_is(api, admin, accept):
    response = await admin.send("GET", KEYS, headers={"Accept": accept})
    assert "application/json" in (await problem(response, 406))["detail"]
    response = await admin.send("POST", KEYS, headers={"Accept": accept}, json=GOOD)
    await problem(response, 406)
    assert (await admin.read(KEYS))["total"] == 0, "it was refused before it took effect"


@on_one_database
async def test_what_is_taken_may_stand_in_several_fields(api, admin):
    fields = [*admin.headers.items(), ("Accept", "text/html"), ("Accept", "application/json")]
    assert (await api.client.get(KEYS, headers=fields)).status == 200


async def raw(api, *lines: str) -> tuple[str, str]:
    """Send a request as it is written here, and return the status line and the rest."""
    reader, writer = await asyncio.open_connection(api.client.host, api.client.port)
    writer.write("\r\n".join([*lines, "Host: localhost", "Connection: close", "", ""]).encode())
    answer = (await reader.read()).decode()
    writer.close()
    await writer.wait_closed()
    status, _, rest = answer.partition("\r\n")
    return status, rest


@on_one_database
async def test_a_body_of_unknown_length_is_asked_for_its_length(api, admin):
    [authorization] = admin.headers.values()
    fields = [f"Authorization: {authorization}", "Content-Type: application/json"]
    status, rest = await raw(api, f"POST {KEYS} HTTP/1.1", *fields)
    assert status == "HTTP/1.1 411 Length Required"
    assert "application/problem+json" in rest


@pytest.mark.parametrize("length", ["Content-Length", "content-length", "CONTENT-LENGTH"])
@on_one_database
async def test_the_names_of_fields_have_no_case(api, admin, length):
    [authorization] = admin.headers.values()
    fields = [f"authorization: {authorization}", "content-type: application/json", f"{length}: 0"]
    status, _ = await raw(api, f"POST {KEYS} HTTP/1.1", *fields)
    assert status == "HTTP/1.1 400 Bad Request", "an empty body is no JSON"


@on_one_database
async def test_a_body_may_come_in_chunks(admin):
    async def chunks():
        yield b'{"name": "playbooks", '
        yield b'"scopes": ["search:read"]}'

    headers = {"Content-Type": "application/json"}
    assert (await admin.send("POST", KEYS, headers=headers, data=chunks())).status == 201


@on_one_database
async def test_a_body_that_is_too_large_is_refused_in_chunks_too(admin):
    async def chunks():
        for _ in range(65):
            yield b" " * 1024

    headers = {"Content-Type": "application/json"}
    await problem(await admin.send("POST", KEYS, headers=headers, data=chunks()), 413)


@on_one_database
async def test_options_tells_anyone_what_a_path_takes(api):
    methods = defaultdict(lambda: {"OPTIONS"})
    for endpoint in ENDPOINTS:
        methods[path_of(endpoint)] |= {endpoint.method} | ({"HEAD"} & _also(endpoint))
    for path, taken in methods.items():
        response = await api.client.options(path)
        assert (response.status, await response.read()) == (204, b"")
        assert response.headers["Allow"] == ", ".join(sorted(taken))


def _also(endpoint) -> set[str]:
    return {"HEAD"} if endpoint.method == "GET" else set()


@on_one_database
async def test_options_of_nothing_is_not_found(api):
    await problem(await api.client.options("/nothing"), 404)


ALWAYS = {
    "Server": "tocsin",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Strict-Transport-Security": "max-age=31536000",
}


@on_one_database
async def test_every_answer_is_safe_to_show_whatever_it_is(api, admin):
    for method, path, status in (
        ("GET", KEYS, 200),
        ("OPTIONS", KEYS, 204),
        ("GET", f"{KEYS}/x", 404),
        ("GET", "/nothing", 404),
        ("PUT", KEYS, 405),
        ("POST", "/oauth/token", 400),
    ):
        response = await admin.send(method, path)
        assert response.status == status
        assert {name: response.headers[name] for name in ALWAYS} == ALWAYS


@on_one_database
async def test_without_tls_nothing_is_promised_of_it(database, clock):
    async with open_api(database, clock, base_url="http://127.0.0.1") as api:
        response = await api.client.get("/healthz")
    assert "Strict-Transport-Security" not in response.headers


SOAR = "https://soar.example"


async def test_no_page_of_another_origin_may_call_by_default(api):
    preflight = {"Origin": SOAR, "Access-Control-Request-Method": "GET"}
    for response in (
        await api.client.options(KEYS, headers=preflight),
        await api.client.get("/healthz", headers={"Origin": SOAR}),
    ):
        assert not [name for name in response.headers if name.startswith("Access-Control")]


@on_one_database
async def test_pages_of_the_origins_in_the_settings_may_call(database, clock):
    async with open_api(database, clock, cors_origins=SOAR) as api:
        preflight = {"Origin": SOAR, "Access-Control-Request-Method": "POST"}
        response = await api.client.options(KEYS, headers=preflight)
        assert response.status == 204
        assert response.headers["Access-Control-Allow-Origin"] == SOAR
        assert response.headers["Access-Control-Allow-Methods"] == "GET, HEAD, OPTIONS, POST"
        taken = response.headers["Access-Control-Allow-Headers"].split(", ")
        assert {"Authorization", "X-API-Key", "Idempotency-Key", "If-None-Match"} <= set(taken)
        assert response.headers["Access-Control-Max-Age"] == "600"


@on_one_database
async def test_such_a_page_may_read_answers_and_errors(database, clock):
    async with open_api(database, clock, cors_origins=SOAR) as api:
        admin = Admin(api, await api.admin())
        for path in (KEYS, f"{KEYS}/x", "/nothing"):
            response = await admin.send("GET", path, headers={"Origin": SOAR})
            assert response.headers["Access-Control-Allow-Origin"] == SOAR
            assert "Access-Control-Allow-Credentials" not in response.headers
            assert "Origin" in response.headers["Vary"]
            shown = response.headers["Access-Control-Expose-Headers"].split(", ")
            assert {"ETag", "Link", "Retry-After", "X-Request-Id"} <= set(shown)
            assert response.headers["Cross-Origin-Resource-Policy"] == "cross-origin"


@pytest.mark.parametrize("origin", ["https://evil.example", f"{SOAR}.evil.example", "null", ""])
@on_one_database
async def test_pages_of_other_origins_may_not(database, clock, origin):
    async with open_api(database, clock, cors_origins=SOAR) as api:
        for response in (
            await api.client.options(KEYS, headers={"Origin": origin}),
            await api.client.get("/healthz", headers={"Origin": origin}),
            await api.client.get("/healthz"),
        ):
            assert not [name for name in response.headers if name.startswith("Access-Control")]
            assert "Origin" in response.headers["Vary"], "caches are to keep the answers apart"


@on_one_database
async def test_beyond_the_rate_limit_it_is_said_when_to_come_back(database, clock):
    async with open_api(database, clock, rate_limit=60, rate_burst=2) as api:
        admin = Admin(api, await api.admin())
        for _ in range(2):
            await admin.read(KEYS)
        response = await admin.send("GET", KEYS)
        document = await problem(response, 429)
        assert document["type"] == "/problems/too-many-requests"
        assert response.headers["Retry-After"] == "1"
        assert "RateLimit" in response.headers
        assert "RateLimit-Policy" in response.headers
        clock.advance(seconds=1)
        await admin.read(KEYS)
