"""Administering over the HTTP API from the command line."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import ssl
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
import structlog
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from sqlalchemy import URL, select
from typer.testing import CliRunner

from api_callers import Admin, admitted, obtain_token, request_token, token_admitted
from api_server import ENCRYPTION_KEY, Api, open_api
from api_server import URL as PUBLIC_URL
from commands import ForkedCommand
from tocsin.cli import app
from tocsin.credentials import ApiKey, Scope, create_api_key, generate_key, load_api_key
from tocsin.errors import OperatorError
from tocsin.store.tables import idempotency_keys
from tocsin.web import make_app
from tocsin.web.schemas.api_keys import CreatedApiKey

MOMENT = "2026-11-21T12:00:00.000Z"
LATER = "2027-11-21T12:00:00.000Z"
KEY = re.compile(r"sk_live_[0-9A-Za-z]{16}_[0-9A-Za-z]{49}\n")
SCOPE = ("--scope", "incidents:read")

Refused = Callable[..., Awaitable[str]]


@pytest.fixture
def database_url(tmp_path) -> URL:
    """Which database the API stands on does not matter to its callers."""
    return URL.create("sqlite", database=str(tmp_path / "tocsin.db"))


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch) -> None:
    for name in [name for name in os.environ if name.startswith("TOCSIN_")]:
        monkeypatch.delenv(name)


def _run(arguments: tuple[str, ...], variables: dict[str, str]) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, arguments, env=variables)
    if isinstance(result.exception, OperatorError):
        return 2, result.stdout, f"{result.stderr}{result.exception}"
    assert isinstance(result.exception, SystemExit | None), result.exception
    return result.exit_code, result.stdout, result.stderr


async def run(*arguments: str, **variables: str) -> tuple[int, str, str]:
    """Run a command, and return status, output and errors."""
    return await asyncio.to_thread(_run, arguments, variables)


def address_of(api: Api) -> str:
    return str(api.client.make_url("/")).rstrip("/")


@pytest.fixture
def url(api) -> str:
    return address_of(api)


@pytest.fixture
async def token(api) -> str:
    return await api.token()


@pytest.fixture
async def admin(api, token) -> Admin:
    return Admin(api, {"Authorization": f"Bearer {token}"})


@pytest.fixture
def tocsin(url, token):
    """Run a command that has to succeed, as an admin; return output and remarks."""

    async def tocsin(*arguments: str) -> tuple[str, str]:
        status, out, remarks = await run(*arguments, TOCSIN_URL=url, TOCSIN_ADMIN_TOKEN=token)
        assert status == 0, remarks
        assert token not in out + remarks
        return out, remarks

    return tocsin


@pytest.fixture
def refused(url, token) -> Refused:
    """Run a command that has to be refused, as an admin; return why."""

    async def refused(*arguments: str, **variables: str) -> str:
        environment = {"TOCSIN_URL": url, "TOCSIN_ADMIN_TOKEN": token} | variables
        status, out, errors = await run(*arguments, **environment)
        assert (status, out) == (2, "")
        assert token not in errors
        return errors

    return refused


# API keys


async def test_a_created_key_alone_is_on_standard_output_and_can_be_used_at_once(
    api, admin, tocsin
):
    out, remarks = await tocsin(
        *("keys", "create", "playbooks", "--scope", "search:read", *SCOPE),
        *("--description", "of the night shift", "--expires-in-days", "30"),
    )
    assert KEY.fullmatch(out)
    key = (await admin.read("/api/admin/api-keys"))["api_keys"][0]
    assert f"key {key['key_id']} expires at 2026-12-21T12:00:00.000Z" in remarks
    assert "Copy the output now" in remarks
    assert out.strip() not in remarks
    assert (key["name"], key["description"]) == ("playbooks", "of the night shift")
    assert key["scopes"] == ["incidents:read", "search:read"]
    assert await admitted(api, out.strip())


async def test_what_is_not_given_is_left_to_the_server(admin, tocsin):
    await tocsin("keys", "create", "playbooks", *SCOPE)
    [key] = (await admin.read("/api/admin/api-keys"))["api_keys"]
    assert (key["description"], key["expires_at"]) == ("", LATER)
    _, remarks = await tocsin("keys", "rotate", key["key_id"])
    assert "the old value works until 2026-11-28T12:00:00.000Z" in remarks


async def test_json_of_a_created_key_is_the_whole_answer_without_remarks(tocsin):
    out, remarks = await tocsin("keys", "create", "playbooks", *SCOPE, "--json")
    CreatedApiKey.model_validate_json(out)
    assert KEY.fullmatch(json.loads(out)["api_key"] + "\n")
    assert remarks == ""


@pytest.mark.parametrize(
    ("days", "end"),
    [("7", "works until 2026-11-28T12:00:00.000Z"), ("0", "no longer works")],
)
async def test_a_rotated_key_alone_is_on_standard_output(api, admin, tocsin, days, end):
    key = await admin.create_key()
    options = ("--grace-period-days", days, "--expires-in-days", "90")
    out, remarks = await tocsin("keys", "rotate", key["key_id"], *options)
    assert KEY.fullmatch(out)
    assert f"key {key['key_id']} expires at 2027-02-19T12:00:00.000Z" in remarks
    assert f"the old value {end}" in remarks
    assert await admitted(api, out.strip())
    assert await admitted(api, key["api_key"]) is (days != "0")


async def test_a_disabled_key_ends_at_once(api, admin, tocsin):
    key = await admin.create_key()
    rotated = await admin.rotate(key["key_id"])
    out, _ = await tocsin("keys", "disable", key["key_id"])
    assert out.startswith(f"{key['key_id']}\tplaybooks\tdisabled\t")
    for value in (key["api_key"], rotated["api_key"]):
        assert not await admitted(api, value)


# API clients


async def test_a_created_client_is_its_id_and_secret_on_one_line(api, tocsin):
    out, remarks = await tocsin("clients", "create", "soar", *SCOPE)
    assert f"token endpoint {PUBLIC_URL}/oauth/token" in remarks
    client_id, secret = out.removesuffix("\n").split("\t")
    assert secret not in remarks
    token = await obtain_token(api, {"client_id": client_id, "client_secret": secret})
    assert await token_admitted(api, token)


async def test_a_regenerated_secret_alone_is_on_standard_output(api, admin, tocsin):
    client = await admin.create_client()
    out, remarks = await tocsin("clients", "regenerate-secret", client["client_id"])
    assert "the old secret of the client" in remarks
    assert (await request_token(api, client)).status == 401
    assert await obtain_token(api, client | {"client_secret": out.removesuffix("\n")})


async def test_tokens_of_a_client_are_revoked(api, admin, tocsin):
    client = await admin.create_client()
    token = await obtain_token(api, client)
    out, _ = await tocsin("clients", "revoke-tokens", client["client_id"])
    assert out.startswith(f"{client['client_id']}\tplaybooks\tactive\t")
    assert not await token_admitted(api, token)


async def test_a_disabled_client_keeps_the_tokens_that_it_holds(api, admin, tocsin):
    client = await admin.create_client()
    token = await obtain_token(api, client)
    out, _ = await tocsin("clients", "disable", client["client_id"])
    assert out.startswith(f"{client['client_id']}\tplaybooks\tdisabled\t")
    assert (await request_token(api, client)).status == 401
    assert await token_admitted(api, token)


async def test_each_call_that_makes_a_secret_has_an_idempotency_key_of_its_own(api, admin, tocsin):
    key, client = await admin.create_key(), await admin.create_client()
    await tocsin("keys", "create", "playbooks", *SCOPE)
    await tocsin("keys", "rotate", key["key_id"])
    await tocsin("clients", "create", "soar", *SCOPE)
    await tocsin("clients", "regenerate-secret", client["client_id"])
    stored = select(idempotency_keys.c.key)
    keys = await api.services.database.read(lambda connection: connection.scalars(stored).all())
    assert len(set(keys)) == 4


# Lists


async def test_off_a_terminal_a_list_is_lines_of_tabs(api, admin, tocsin):
    key = await admin.create_key(scopes=["search:read", "incidents:read"])
    client = await admin.create_client(name="soar")
    await obtain_token(api, client)
    await api.door.usage.flush()
    assert (await tocsin("keys", "list"))[0].split("\t") == [
        *(key["key_id"], "playbooks", "active", "incidents:read,search:read"),
        *("ana", MOMENT, LATER, "\n"),
    ]
    assert (await tocsin("clients", "list"))[0].removesuffix("\n").split("\t") == [
        *(client["client_id"], "soar", "active", "incidents:read", "ana", MOMENT, MOMENT)
    ]


async def test_json_holds_all_that_the_server_sent(admin, tocsin):
    await admin.create_key()
    await admin.create_client()
    for command, path, member in (
        ("keys", "api-keys", "api_keys"),
        ("clients", "api-clients", "clients"),
        ("audit", "audit", "entries"),
    ):
        sent = (await admin.read(f"/api/admin/{path}"))[member]
        assert sent
        assert json.loads((await tocsin(command, "list", "--json"))[0]) == sent


async def test_on_a_terminal_a_list_is_a_table(admin, url, token, tmp_path):
    key = await admin.create_key()
    ours, terminal = pty.openpty()
    variables = {"TOCSIN_URL": url, "TOCSIN_ADMIN_TOKEN": token, "COLUMNS": "200", "TERM": "xterm"}
    command = await asyncio.to_thread(
        ForkedCommand,
        ["keys", "list"],
        tmp_path,
        os.environ | variables,
        output=Path(os.ttyname(terminal)),
        errors=tmp_path / "errors",
    )
    assert await command.wait() == 0, (tmp_path / "errors").read_text()
    os.close(terminal)
    plain = re.sub("\x1b\\[[0-9;]*m", "", os.read(ours, 10_000).decode())
    heading, row = plain.splitlines()
    os.close(ours)
    assert heading.split()[:4] == ["key", "id", "name", "status"]
    assert row.split()[:4] == [key["key_id"], "playbooks", "✓", "active"]


async def add_keys(api, count: int) -> list[str]:
    """Store keys that nobody can use, and return their identifiers, the newest first."""
    now = api.services.clock.now()
    values = [generate_key()[0] for _ in range(count)]
    first = ApiKey(
        id="",
        key_id="",
        prefix="sk_live_",
        name="playbooks",
        description="",
        scopes=(Scope.SEARCH_READ,),
        secret_hash="",
        created_by="ana",
        created_at=now,
        updated_at=now,
        expires_at=now + timedelta(days=1),
    )

    def store(connection) -> None:
        for number, value in enumerate(values):
            key = replace(first, id=f"{number:026}", key_id=value.identifier)
            create_api_key(connection, key)

    await api.services.database.write(store)
    return [value.identifier for value in reversed(values)]


async def test_a_list_follows_the_pages_as_far_as_wanted(api, tocsin):
    keys = await add_keys(api, 410)
    for limit in (1, 200, 201, 450):
        out, _ = await tocsin("keys", "list", "--limit", str(limit))
        assert [line.split("\t")[0] for line in out.splitlines()] == keys[:limit]
    out, errors = await tocsin("keys", "list")
    assert len(out.splitlines()) == 50
    assert "showing 50 of 410; use --limit to see more" in errors


async def test_a_list_can_be_searched(admin, tocsin):
    await admin.create_key(name="a & b/ü")
    await admin.create_key(name="others")
    await admin.create_client(name="100%?")
    await admin.create_client(name="others")
    for command, search, name in (
        ("keys", "& B/Ü", "a & b/ü"),
        ("clients", "%?", "100%?"),
    ):
        [line] = (await tocsin(command, "list", "--search", search))[0].splitlines()
        assert line.split("\t")[1] == name


@pytest.mark.parametrize("command", ["show", "disable"])
async def test_one_record_is_a_list_of_one(admin, tocsin, command):
    key, client = await admin.create_key(), await admin.create_client()
    status = "disabled" if command == "disable" else "active"
    for kind, identifier in (("keys", key["key_id"]), ("clients", client["client_id"])):
        [record] = json.loads((await tocsin(kind, command, identifier, "--json"))[0])
        path = f"/api/admin/api-{kind}/{identifier}"
        assert record == await admin.read(path)
        assert record["status"] == status
        assert (await tocsin(kind, "show", identifier))[0].startswith(f"{identifier}\tplaybooks\t")


# The audit log


async def test_the_audit_shows_its_details(tocsin):
    await tocsin("keys", "create", "playbooks", *SCOPE)
    [entry] = json.loads((await tocsin("audit", "list", "--json"))[0])
    columns = (await tocsin("audit", "list"))[0].removesuffix("\n").split("\t")
    assert columns[:6] == [
        *(MOMENT, "admin:ana", "api-key.create", entry["target"], "127.0.0.1", "1")
    ]
    assert columns[6] == entry["request_id"]
    assert json.loads(columns[7]) == entry["details"]
    assert entry["details"]["scopes"] == ["incidents:read"]


async def test_the_audit_can_be_narrowed(admin, tocsin):
    key = await admin.create_key()
    await admin.create_client()
    await admin.ask("DELETE", f"/api/admin/api-keys/{key['key_id']}")
    for options, actions in (
        (["--action", "api-client.create"], ["api-client.create"]),
        (["--target", f"key:{key['key_id']}"], ["api-key.disable", "api-key.create"]),
        (["--actor", "admin:ben"], []),
        (["--limit", "1"], ["api-key.disable"]),
    ):
        out, _ = await tocsin("audit", "list", *options)
        assert [line.split("\t")[2] for line in out.splitlines()] == actions


@pytest.fixture
def present(clock) -> None:
    """Move the clock to where that of a command stands, which is a process of its own."""
    clock.advance(seconds=(datetime.now(UTC) - clock.now()).total_seconds())


async def test_the_chain_is_verified_beside_the_running_service(present, api, admin, database_url):
    await admin.create_key()
    await api.door.sealer.seal()
    await admin.create_client()
    variables = {
        "TOCSIN_DATABASE_URL": f"sqlite:///{database_url.database}",
        "TOCSIN_ENCRYPTION_KEY": ENCRYPTION_KEY,
    }
    status, out, errors = await run("audit", "verify", **variables)
    entries, unsealed, head, problems = out.removesuffix("\n").split("\t")
    assert (status, errors, problems) == (0, "", "0")
    assert (entries, unsealed) == ("1", "1")
    await api.door.sealer.seal()
    assert (await run("audit", "verify", "--head", head, **variables))[0] == 0
    cut_off = f"9:{'0' * 64}"
    status, _, errors = await run("audit", "verify", "--head", cut_off, **variables)
    assert status == 1
    assert "9" in errors
    status, _, errors = await run("audit", "verify", "--head", "9", **variables)
    assert status == 2
    assert "--head: found '9'" in errors


# An admin's token


async def test_an_admin_has_a_token_and_everything_is_done_in_their_name(api, url, database_url):
    variables = {
        "TOCSIN_DATABASE_URL": f"sqlite:///{database_url.database}",
        "TOCSIN_ENCRYPTION_KEY": ENCRYPTION_KEY,
    }
    status, out, _ = await run("admin", "token", "--name", "ben", **variables)
    assert status == 0
    admin = {"TOCSIN_URL": url, "TOCSIN_ADMIN_TOKEN": out}
    status, key, _ = await run("keys", "create", "playbooks", *SCOPE, **admin)
    assert status == 0
    stored = await api.services.database.read(load_api_key, key[8:24])
    assert stored.created_by == "ben"
    assert (await run("admin", "revoke-all", **variables))[0] == 0
    status, _, errors = await run("keys", "list", **admin)
    assert status == 2
    assert "401: The bearer token is not valid." in errors


async def test_options_win_over_the_environment(url, token):
    status, _, errors = await run(
        *("keys", "list", "--url", url + "/", "--token", token),
        TOCSIN_URL="http://127.0.0.1:1",
        TOCSIN_ADMIN_TOKEN="stale",
    )
    assert status == 0, errors


async def test_by_default_the_settings_say_where_tocsin_is(url, token):
    assert await run("keys", "list", TOCSIN_BASE_URL=url, TOCSIN_ADMIN_TOKEN=token) == (0, "", "")


async def test_an_api_below_a_path_is_reached(api, aiohttp_server, token):
    outer = web.Application()
    outer.add_subapp("/tocsin", make_app(api.services))
    url = str((await aiohttp_server(outer)).make_url("/tocsin/"))
    assert (await run("keys", "list", TOCSIN_URL=url, TOCSIN_ADMIN_TOKEN=token))[0] == 0


async def test_a_token_may_end_in_a_newline_and_holds_nothing_else_beside(refused, tocsin, token):
    await tocsin("keys", "list", "--token", token + "\n")
    for wrong in (f"Bearer {token}", f"{token}\r\nX-Evil: 1", "tök"):
        errors = await refused("keys", "list", "--token", wrong)
        assert "characters that a token cannot contain" in errors
        assert wrong not in errors


# What the service refuses


async def test_a_token_that_is_not_accepted_may_have_to_be_new(refused, clock):
    errors = await refused("keys", "list", TOCSIN_ADMIN_TOKEN="stale")
    assert "401: The bearer token is not valid." in errors
    assert "the credential might have expired; to get a new one, run `tocsin admin token`" in errors
    assert "stale" not in errors
    clock.advance(hours=1)
    assert "401: The bearer token has expired." in await refused("keys", "list")


async def test_a_refusal_says_its_status_and_why(api, admin, refused):
    key, client = await admin.create_key(), await admin.create_client()
    await admin.ask("DELETE", f"/api/admin/api-keys/{key['key_id']}")
    await admin.ask("DELETE", f"/api/admin/api-clients/{client['client_id']}")
    create = ("keys", "create", "playbooks", "--scope", "nonsense")
    assert "400: Unknown scope 'nonsense'; valid scopes are" in await refused(*create)
    assert "404: There is no API client" in await refused("clients", "show", "cl_2")
    assert "409: The API key is disabled" in await refused("keys", "rotate", key["key_id"])
    regenerate = ("clients", "regenerate-secret", client["client_id"])
    assert "409: The API client is disabled permanently" in await refused(*regenerate)
    no_admin = await api.access_token(*Scope)
    errors = await refused("keys", "list", TOCSIN_ADMIN_TOKEN=no_admin)
    assert "403: This endpoint requires the admin role." in errors
    assert no_admin not in errors


async def test_a_refusal_lists_every_mistake(refused):
    create = ("keys", "create", "", *SCOPE, "--expires-in-days", "9999")
    first, *mistakes = (await refused(*create)).splitlines()
    assert first == "422: 2 errors in the body."
    assert sorted(line.partition(":")[0] for line in mistakes) == ["  expires_in_days", "  name"]


async def test_who_asks_too_often_is_told_when_to_come_back(database, clock):
    async with open_api(database, clock, rate_limit=1, rate_burst=1) as api:
        variables = {"TOCSIN_URL": address_of(api), "TOCSIN_ADMIN_TOKEN": await api.token()}
        assert (await run("keys", "list", **variables))[0] == 0
        status, _, errors = await run("keys", "list", **variables)
        assert status == 2
        assert "429: Too many requests; try again in 60 s." in errors


async def test_an_identifier_never_leads_to_another_path(admin, refused):
    client = await admin.create_client()
    path = f"api-clients/{client['client_id']}"
    assert "404" in await refused("keys", "disable", f"../{path}")
    assert (await admin.read(f"/api/admin/{path}"))["status"] == "active"


# What is asked of nobody


@pytest.fixture
def asked() -> list[str]:
    """The paths that the stand-in was asked for."""
    return []


@pytest.fixture
def answering(aiohttp_server, asked):
    """Serve one answer to everything, and return where: for what no Tocsin would answer."""

    async def answering(**answer) -> str:
        async def handler(request: web.Request) -> web.Response:
            asked.append(request.path)
            return web.Response(**answer)

        app = web.Application()
        app.router.add_route("*", "/{path:.*}", handler)
        return str((await aiohttp_server(app)).make_url(""))

    return answering


async def test_without_a_token_it_is_said_where_one_comes_from(refused, answering, asked):
    url = await answering()
    errors = await refused("keys", "list", "--url", url, TOCSIN_ADMIN_TOKEN="")
    assert "TOCSIN_ADMIN_TOKEN" in errors
    assert "tocsin admin token" in errors
    assert asked == []


async def test_a_key_without_a_scope_is_not_asked_for(refused, answering, asked):
    url = await answering()
    assert "--scope" in await refused("keys", "create", "playbooks", "--url", url)
    assert asked == []


@pytest.mark.parametrize(
    "url",
    [
        "http://tocsin.example",
        "http://192.0.2.7:8080",
        "http://0.0.0.0:8080",
        "http://[2001:db8::1]",
        "http://localhost.example",
        "http://127.0.0.1.example",
    ],
)
async def test_a_token_is_not_sent_in_plain_text_to_another_machine(refused, url):
    errors = await refused("keys", "list", "--url", url)
    assert "is not this machine" in errors
    assert "https://" in errors


@pytest.mark.parametrize("name", ["localhost", "LOCALHOST", "127.0.0.1"])
async def test_plain_text_stays_on_this_machine(tocsin, url, name):
    await tocsin("keys", "list", "--url", url.replace("127.0.0.1", name))


@pytest.mark.parametrize(
    "url",
    [
        "tocsin.example",
        "ftp://tocsin.example",
        "https://",
        "https://ana:hunter2@h",
        "https://h:99999",
        "https://h/?token=hunter2",
        "https://h/#hunter2",
    ],
)
async def test_a_wrong_url_is_said_to_be_one(refused, url):
    errors = await refused("keys", "list", "--url", url)
    assert "--url (or TOCSIN_URL, TOCSIN_BASE_URL): " in errors
    assert "hunter2" not in errors


async def test_a_proxy_of_the_environment_is_not_used(url, token):
    proxy = {"http_proxy": "http://127.0.0.1:1", "HTTP_PROXY": "http://127.0.0.1:1"}
    variables = {"TOCSIN_URL": url, "TOCSIN_ADMIN_TOKEN": token} | proxy
    assert (await run("keys", "list", **variables))[0] == 0


# What is broken, or no Tocsin


async def test_a_fault_of_the_server_names_the_request(api, refused):
    object.__setattr__(api.services, "hasher", None)
    processors = [structlog.contextvars.merge_contextvars]
    with structlog.testing.capture_logs(processors=processors) as logs:
        errors = await refused("keys", "create", "playbooks", *SCOPE)
    assert "500: Internal error" in errors
    assert f"X-Request-Id: {logs[0]['request_id']}" in errors


@pytest.mark.parametrize(
    "answer",
    [
        {"status": 200, "text": "<html>welcome</html>", "content_type": "text/html"},
        {"status": 502, "text": "<html>bad gateway</html>", "content_type": "text/html"},
        {"status": 401, "text": "[]", "content_type": "application/json"},
        {"status": 200, "text": "7", "content_type": "application/json"},
    ],
)
async def test_a_page_of_something_in_between_is_not_taken_for_tocsin(answering, refused, answer):
    errors = await refused("keys", "list", "--url", await answering(**answer))
    assert (
        f"received status {answer['status']} with content type {answer['content_type']}" in errors
    )
    assert "TOCSIN_URL" in errors


async def test_json_of_another_service_is_not_taken_for_tocsin(answering, refused):
    url = await answering(text='{"ok": true}', content_type="application/json")
    assert "unexpected response (no field 'api_keys')" in await refused(
        "keys", "list", "--url", url
    )
    create = ("clients", "create", "soar", *SCOPE, "--url", url)
    assert "unexpected response (no field 'client_id')" in await refused(*create)


async def test_a_redirect_is_told_and_not_followed(admin, answering, refused, url):
    path = f"/api/admin/api-keys/{(await admin.create_key())['key_id']}"
    elsewhere = await answering(status=307, headers={"Location": f"{url}{path}"})
    errors = await refused("keys", "disable", "K1", "--url", elsewhere)
    assert f"received status 307 with content type unknown, redirecting to {url}" in errors
    assert (await admin.read(path))["status"] == "active"


async def test_where_nothing_answers_it_is_said_what_to_look_at(refused, unused_tcp_port):
    url = f"http://127.0.0.1:{unused_tcp_port}"
    errors = await refused("keys", "list", "--url", url)
    assert f"port {unused_tcp_port}: cannot connect; check that Tocsin is running at this" in errors
    assert "repeat" not in errors
    assert "check the result before you run the command again" in await refused(
        "keys", "disable", "K1", "--url", url
    )


# TLS


@pytest.fixture
def certificate(tmp_path):
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(names, critical=False)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path = tmp_path / "server.pem"
    path.write_bytes(secret + certificate.public_bytes(serialization.Encoding.PEM))
    return path


@pytest.mark.full
async def test_https_needs_a_certificate_that_is_trusted(
    api, admin, aiohttp_server, certificate, token
):
    key = await admin.create_key()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    served = await aiohttp_server(make_app(api.services), ssl=context)

    async def list_keys(**variables: str) -> subprocess.CompletedProcess:
        url = f"https://127.0.0.1:{served.port}"
        return await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-m", "tocsin", "keys", "list"],
            env=os.environ | {"TOCSIN_URL": url, "TOCSIN_ADMIN_TOKEN": token} | variables,
            capture_output=True,
            text=True,
            check=False,
        )

    untrusted, trusted = await asyncio.gather(
        list_keys(), list_keys(SSL_CERT_FILE=str(certificate))
    )
    assert (untrusted.returncode, untrusted.stdout) == (2, "")
    assert "TLS certificate not valid" in untrusted.stderr
    assert trusted.returncode == 0
    assert trusted.stdout.startswith(f"{key['key_id']}\t")
