"""Administering over the HTTP API from the command line, against a server on loopback."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import ssl
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import pytest
import typer
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from typer.testing import CliRunner

from tocsin.cli import audit, clients, keys
from tocsin.errors import OperatorError

TOKEN = "eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJhbmEifQ.c2lnbmF0dXJl"
MOMENT = "2026-11-21T12:00:00Z"
LATER = "2027-11-21T12:00:00Z"
LARGEST_PAGE = 200

app = typer.Typer()
app.add_typer(keys.app, name="keys")
app.add_typer(clients.app, name="clients")
app.add_typer(audit.app, name="audit")


def problem(status: int, detail: str, **members) -> web.Response:
    document = {"type": "about:blank", "title": "", "status": status, "detail": detail} | members
    return web.json_response(
        document,
        status=status,
        headers={"X-Request-Id": "req-7"},
        content_type="application/problem+json",
    )


def page(request: web.Request, member: str, records: list[dict]) -> web.Response:
    size = int(request.query["limit"])
    if not 1 <= size <= LARGEST_PAGE:
        mistake = {"path": "limit", "detail": f"found {size}; give 1 to {LARGEST_PAGE}"}
        return problem(422, "1 mistake in the query parameters.", errors=[mistake])
    start = int(request.query.get("cursor", "0"))
    end = start + size
    following = str(end) if end < len(records) else None
    content = {member: records[start:end], "total": len(records), "next_cursor": following}
    return web.json_response(content)


class Tocsin:
    """The admin endpoints over lists in memory, and what was asked of them."""

    def __init__(self) -> None:
        self.keys: dict[str, dict] = {}
        self.clients: dict[str, dict] = {}
        self.entries: list[dict] = []
        self.requests: list[tuple[str, str]] = []
        self.idempotency_keys: list[str | None] = []
        self.bodies: list[object] = []

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self._admit])
        on_keys, on_clients = "/api/admin/api-keys", "/api/admin/api-clients"
        app.add_routes(
            [
                web.post(on_keys, self._create_key),
                web.get(on_keys, self._list_keys),
                web.get(on_keys + "/{id}", self._show),
                web.post(on_keys + "/{id}/rotate", self._rotate),
                web.delete(on_keys + "/{id}", self._disable),
                web.post(on_clients, self._create_client),
                web.get(on_clients, self._list_clients),
                web.get(on_clients + "/{id}", self._show),
                web.post(on_clients + "/{id}/regenerate-secret", self._regenerate),
                web.post(on_clients + "/{id}/revoke-tokens", self._show),
                web.delete(on_clients + "/{id}", self._disable),
                web.get("/api/admin/audit", self._audit),
            ]
        )
        return app

    @web.middleware
    async def _admit(self, request: web.Request, handler) -> web.StreamResponse:
        self.requests.append((request.method, request.rel_url.raw_path_qs))
        self.idempotency_keys.append(request.headers.get("Idempotency-Key"))
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return problem(401, "The token is not valid.")
        try:
            return await handler(request)
        except KeyError:
            return problem(404, "There is no such record.")

    async def _body(self, request: web.Request) -> dict:
        assert request.content_type == "application/json"
        self.bodies.append(await request.json())
        return self.bodies[-1]

    def key(self, key_id: str, **members) -> dict:
        self.keys[key_id] = {
            "id": f"id-{key_id}",
            "key_id": key_id,
            "key_prefix": f"sk_live_{key_id}",
            "name": "playbooks",
            "description": "",
            "status": "active",
            "scopes": ["incidents:read", "search:read"],
            "created_by": "ana",
            "created_at": MOMENT,
            "updated_at": MOMENT,
            "expires_at": LATER,
            "last_used_at": None,
            "last_rotated_at": None,
            "previous_key_expires_at": None,
        } | members
        return self.keys[key_id]

    def client(self, client_id: str, **members) -> dict:
        self.clients[client_id] = {
            "id": f"id-{client_id}",
            "client_id": client_id,
            "name": "soar",
            "description": "",
            "status": "active",
            "scopes": ["incidents:read"],
            "created_by": "ana",
            "created_at": MOMENT,
            "last_used_at": None,
        } | members
        return self.clients[client_id]

    def entry(self, **members) -> dict:
        entry = {
            "id": len(self.entries) + 1,
            "at": MOMENT,
            "actor": "ana",
            "action": "api-key.create",
            "target": "K1",
            "address": "127.0.0.1",
            "request_id": "req-1",
            "count": 1,
            "details": {"scopes": ["incidents:read"]},
            "position": None,
            "seal": None,
        } | members
        self.entries.append(entry)
        return entry

    async def _create_key(self, request: web.Request) -> web.Response:
        body = await self._body(request)
        if "nonsense" in body["scopes"]:
            return problem(400, "There is no scope 'nonsense'; valid are graph:read.")
        key = self.key("K1", name=body["name"], scopes=body["scopes"])
        created = {name: key[name] for name in ("id", "key_id", "name", "scopes", "expires_at")}
        secret = {"api_key": "sk_live_K1_first", "header_name": "X-API-Key"}
        return web.json_response(created | secret, status=201)

    async def _list_keys(self, request: web.Request) -> web.Response:
        search = request.query.get("search", "")
        return page(request, "api_keys", [k for k in self.keys.values() if search in k["name"]])

    async def _rotate(self, request: web.Request) -> web.Response:
        key = self.keys[request.match_info["id"]]
        if key["status"] != "active":
            return problem(409, "The key is disabled.")
        grace = (await self._body(request)).get("grace_period_days", 7)
        return web.json_response(
            {
                "key_id": key["key_id"],
                "api_key": "sk_live_K1_second",
                "expires_at": key["expires_at"],
                "previous_key_expires_at": "2026-11-28T12:00:00Z" if grace else None,
            }
        )

    async def _create_client(self, request: web.Request) -> web.Response:
        body = await self._body(request)
        client = self.client("cl_1", name=body["name"], scopes=body["scopes"])
        created = {name: client[name] for name in ("id", "client_id", "name", "scopes")}
        secret = {"client_secret": "cs_live_first", "token_endpoint": "https://t.example/token"}
        return web.json_response(created | secret, status=201)

    async def _list_clients(self, request: web.Request) -> web.Response:
        search = request.query.get("search", "")
        return page(request, "clients", [c for c in self.clients.values() if search in c["name"]])

    async def _regenerate(self, request: web.Request) -> web.Response:
        client = self.clients[request.match_info["id"]]
        return web.json_response(
            {"client_id": client["client_id"], "client_secret": "cs_live_second"}
        )

    async def _show(self, request: web.Request) -> web.Response:
        return web.json_response((self.keys | self.clients)[request.match_info["id"]])

    async def _disable(self, request: web.Request) -> web.Response:
        record = (self.keys | self.clients)[request.match_info["id"]]
        record["status"] = "disabled"
        return web.json_response(record)

    async def _audit(self, request: web.Request) -> web.Response:
        wanted = {n: request.query[n] for n in ("action", "actor", "target") if n in request.query}
        found = [e for e in self.entries if wanted.items() <= e.items()]
        return page(request, "entries", found)


def _run(arguments: tuple[str, ...], variables: dict[str, str]) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, arguments, env=variables)
    if isinstance(result.exception, OperatorError):
        return 2, result.stdout, f"{result.stderr}{result.exception}"
    assert isinstance(result.exception, SystemExit | None), result.exception
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def run(monkeypatch):
    """Run a command, and return status, output and errors, none of which ever holds the token."""
    for name in [name for name in os.environ if name.startswith("TOCSIN_")]:
        monkeypatch.delenv(name)

    async def run(*arguments: str, **variables: str) -> tuple[int, str, str]:
        status, out, errors = await asyncio.to_thread(_run, arguments, variables)
        assert TOKEN not in out + errors
        return status, out, errors

    return run


@pytest.fixture
def server() -> Tocsin:
    return Tocsin()


@pytest.fixture
async def url(aiohttp_server, server) -> str:
    return str((await aiohttp_server(server.app())).make_url("")).rstrip("/")


@pytest.fixture
def tocsin(run, url):
    """Run a command that has to succeed, as an admin of the server; return output and remarks."""

    async def tocsin(*arguments: str) -> tuple[str, str]:
        status, out, remarks = await run(*arguments, TOCSIN_URL=url, TOCSIN_ADMIN_TOKEN=TOKEN)
        assert status == 0, remarks
        return out, remarks

    return tocsin


@pytest.fixture
def refused(run, url):
    """Run a command that has to be refused, as an admin of the server; return why."""

    async def refused(*arguments: str, **variables: str) -> str:
        environment = {"TOCSIN_URL": url, "TOCSIN_ADMIN_TOKEN": TOKEN} | variables
        status, out, errors = await run(*arguments, **environment)
        assert (status, out) == (2, "")
        return errors

    return refused


@pytest.fixture
def answering(aiohttp_server):
    """Serve one answer to everything, and return where."""

    async def answering(**answer) -> str:
        async def handler(_request: web.Request) -> web.Response:
            return web.Response(**answer)

        app = web.Application()
        app.router.add_route("*", "/{path:.*}", handler)
        return str((await aiohttp_server(app)).make_url(""))

    return answering


async def test_a_created_key_alone_is_on_standard_output(tocsin, server):
    out, remarks = await tocsin(
        *("keys", "create", "playbooks", "--scope", "search:read", "--scope", "graph:read"),
        *("--description", "of the night shift", "--expires-in-days", "30"),
    )
    assert out == "sk_live_K1_first\n"
    assert f"key K1, until {LATER}" in remarks
    assert "shown once" in remarks
    assert server.bodies == [
        {
            "name": "playbooks",
            "description": "of the night shift",
            "scopes": ["search:read", "graph:read"],
            "expires_in_days": 30,
        }
    ]


async def test_what_is_not_given_is_left_to_the_server(tocsin, server):
    await tocsin("keys", "create", "playbooks", "--scope", "search:read")
    await tocsin("keys", "rotate", "K1")
    assert server.bodies == [{"name": "playbooks", "scopes": ["search:read"]}, {}]


async def test_json_of_a_created_key_is_the_whole_answer_without_remarks(tocsin):
    out, remarks = await tocsin("keys", "create", "playbooks", "--scope", "search:read", "--json")
    assert json.loads(out) == {
        "id": "id-K1",
        "key_id": "K1",
        "api_key": "sk_live_K1_first",
        "name": "playbooks",
        "scopes": ["search:read"],
        "expires_at": LATER,
        "header_name": "X-API-Key",
    }
    assert remarks == ""


@pytest.mark.parametrize(
    ("days", "end"), [("7", "works until 2026-11-28T12:00:00Z"), ("0", "no longer works")]
)
async def test_a_rotated_key_alone_is_on_standard_output(tocsin, server, days, end):
    server.key("K1")
    options = ("--grace-period-days", days, "--expires-in-days", "90")
    out, remarks = await tocsin("keys", "rotate", "K1", *options)
    assert out == "sk_live_K1_second\n"
    assert f"the old value {end}" in remarks
    assert server.bodies == [{"grace_period_days": int(days), "expires_in_days": 90}]


async def test_a_created_client_is_its_id_and_secret_on_one_line(tocsin):
    out, remarks = await tocsin("clients", "create", "soar", "--scope", "incidents:read")
    assert out == "cl_1\tcs_live_first\n"
    assert "https://t.example/token" in remarks


async def test_a_regenerated_secret_alone_is_on_standard_output(tocsin, server):
    server.client("cl_1")
    out, remarks = await tocsin("clients", "regenerate-secret", "cl_1")
    assert out == "cs_live_second\n"
    assert "the old secret no longer works" in remarks


async def test_each_call_that_makes_a_secret_has_an_idempotency_key_of_its_own(tocsin, server):
    await tocsin("keys", "create", "playbooks", "--scope", "search:read")
    await tocsin("keys", "rotate", "K1")
    await tocsin("clients", "create", "soar", "--scope", "search:read")
    await tocsin("clients", "regenerate-secret", "cl_1")
    assert None not in server.idempotency_keys
    assert len(set(server.idempotency_keys)) == 4


async def test_off_a_terminal_a_list_is_lines_of_tabs(tocsin, server):
    server.key("K1")
    server.client("cl_1", last_used_at=LATER)
    assert (await tocsin("keys", "list"))[0].split("\t") == [
        *("K1", "playbooks", "active", "incidents:read,search:read", "ana", MOMENT, LATER),
        "\n",
    ]
    assert (await tocsin("clients", "list"))[0].rstrip("\n").split("\t") == [
        *("cl_1", "soar", "active", "incidents:read", "ana", MOMENT, LATER)
    ]


async def test_the_audit_shows_its_details(tocsin, server):
    server.entry()
    assert (await tocsin("audit", "list"))[0].rstrip("\n").split("\t") == [
        *(MOMENT, "ana", "api-key.create", "K1", "127.0.0.1", "1", "req-1"),
        '{"scopes":["incidents:read"]}',
    ]


async def test_json_holds_all_that_the_server_sent(tocsin, server):
    key, client, entry = server.key("K1"), server.client("cl_1"), server.entry()
    assert json.loads((await tocsin("keys", "list", "--json"))[0]) == [key]
    assert json.loads((await tocsin("clients", "list", "--json"))[0]) == [client]
    assert json.loads((await tocsin("audit", "list", "--json"))[0]) == [entry]


async def test_on_a_terminal_a_list_is_a_table(server, url):
    server.key("K1")
    ours, terminal = pty.openpty()
    program = "from tocsin.cli import keys; keys.app(['list'])"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "error", "-c", program),
        stdout=terminal,
        env=os.environ
        | {"TOCSIN_URL": url, "TOCSIN_ADMIN_TOKEN": TOKEN, "COLUMNS": "200", "TERM": "xterm"},
    )
    assert await process.wait() == 0
    os.close(terminal)
    plain = re.sub("\x1b\\[[0-9;]*m", "", os.read(ours, 10_000).decode())
    heading, row = plain.splitlines()
    os.close(ours)
    assert heading.split()[:4] == ["key", "id", "name", "status"]
    assert row.split()[:3] == ["K1", "playbooks", "active"]


@pytest.mark.parametrize(
    ("limit", "shown", "sizes"), [(1, 1, [1]), (200, 200, [200]), (450, 410, [200, 200, 50])]
)
async def test_a_list_follows_the_pages_as_far_as_wanted(tocsin, server, limit, shown, sizes):
    for number in range(410):
        server.key(f"K{number}")
    out, _ = await tocsin("keys", "list", "--limit", str(limit))
    assert [line.split("\t")[0] for line in out.splitlines()] == [f"K{n}" for n in range(shown)]
    assert [int(path.split("limit=")[1].split("&")[0]) for _, path in server.requests] == sizes


async def test_a_list_can_be_searched(tocsin, server):
    server.key("K1", name="a & b/ü")
    server.key("K2")
    server.client("cl_1")
    server.client("cl_2", name="100%?")
    assert (await tocsin("keys", "list", "--search", "& b/ü"))[0].startswith("K1\t")
    assert (await tocsin("clients", "list", "--search", "%?"))[0].startswith("cl_2\t")


async def test_the_audit_can_be_narrowed(tocsin, server):
    server.entry()
    server.entry(action="api-key.rotate", actor="ben", target="K2")
    for options in (["--action", "api-key.rotate"], ["--actor", "ben"], ["--target", "K2"]):
        out, _ = await tocsin("audit", "list", *options)
        assert [line.split("\t")[1] for line in out.splitlines()] == ["ben"]


@pytest.mark.parametrize("command", ["show", "disable"])
async def test_one_record_is_a_list_of_one(tocsin, server, command):
    server.key("K1")
    server.client("cl_1")
    assert (await tocsin("keys", command, "K1"))[0].startswith("K1\tplaybooks\t")
    key = json.loads((await tocsin("keys", command, "K1", "--json"))[0])
    client = json.loads((await tocsin("clients", command, "cl_1", "--json"))[0])
    assert key + client == [server.keys["K1"], server.clients["cl_1"]]
    assert key[0]["status"] == ("disabled" if command == "disable" else "active")


async def test_tokens_are_revoked_at_the_client(tocsin, server):
    server.client("cl_1")
    assert (await tocsin("clients", "revoke-tokens", "cl_1"))[0].startswith("cl_1\tsoar\tactive\t")
    assert server.requests == [("POST", "/api/admin/api-clients/cl_1/revoke-tokens")]


async def test_an_identifier_never_leads_to_another_path(refused, server):
    server.client("cl_1")
    assert "404" in await refused("keys", "disable", "../api-clients/cl_1")
    assert server.clients["cl_1"]["status"] == "active"


async def test_options_win_over_the_environment(run, server, url):
    status, _, _ = await run(
        *("keys", "list", "--url", url + "/", "--token", TOKEN),
        TOCSIN_URL="http://127.0.0.1:1",
        TOCSIN_ADMIN_TOKEN="stale",
    )
    assert (status, server.requests) == (0, [("GET", "/api/admin/api-keys?limit=50")])


async def test_by_default_the_settings_say_where_tocsin_is(run, server, url):
    assert await run("keys", "list", TOCSIN_BASE_URL=url, TOCSIN_ADMIN_TOKEN=TOKEN) == (0, "", "")
    assert len(server.requests) == 1


async def test_an_api_below_a_path_is_reached(run, server, aiohttp_server):
    outer = web.Application()
    outer.add_subapp("/tocsin", server.app())
    url = str((await aiohttp_server(outer)).make_url("/tocsin/"))
    assert (await run("keys", "list", TOCSIN_URL=url, TOCSIN_ADMIN_TOKEN=TOKEN))[0] == 0


async def test_without_a_token_it_is_said_where_one_comes_from(refused, server):
    errors = await refused("keys", "list", TOCSIN_ADMIN_TOKEN="")
    assert "TOCSIN_ADMIN_TOKEN" in errors
    assert "tocsin admin token" in errors
    assert server.requests == []


async def test_a_token_may_end_in_a_newline_and_holds_nothing_else_beside(refused, tocsin, url):
    await tocsin("keys", "list", "--token", TOKEN + "\n")
    for token in (f"Bearer {TOKEN}", f"{TOKEN}\r\nX-Evil: 1", "tök"):
        errors = await refused("keys", "list", "--token", token)
        assert "characters that no token has" in errors
        assert token not in errors


async def test_a_token_that_is_not_accepted_may_have_to_be_new(refused):
    errors = await refused("keys", "list", TOCSIN_ADMIN_TOKEN="stale")
    assert "401: The token is not valid." in errors
    assert "a new token may be needed" in errors
    assert "stale" not in errors


async def test_a_refusal_says_its_status_and_why(refused, server):
    server.key("K1", status="disabled")
    create = ("keys", "create", "playbooks", "--scope", "nonsense")
    assert "400: There is no scope 'nonsense'" in await refused(*create)
    assert "404: There is no such record." in await refused("clients", "show", "cl_2")
    assert "409: The key is disabled." in await refused("keys", "rotate", "K1")


async def test_a_refusal_lists_every_mistake(answering, refused):
    mistakes = [{"path": "name", "detail": "missing"}, {"path": "scopes.0", "detail": "found 1"}]
    document = json.dumps({"status": 422, "detail": "2 mistakes.", "errors": mistakes})
    url = await answering(status=422, text=document, content_type="application/problem+json")
    errors = await refused("keys", "list", "--url", url)
    assert errors.splitlines() == ["422: 2 mistakes.", "  name: missing", "  scopes.0: found 1"]


async def test_a_fault_of_the_server_names_the_request(answering, refused):
    url = await answering(
        status=500, text='{"detail": "A bug."}', headers={"X-Request-Id": "req-7"}
    )
    assert "X-Request-Id: req-7" in await refused("keys", "list", "--url", url)


async def test_a_key_without_a_scope_is_not_asked_for(refused, server):
    assert "--scope" in await refused("keys", "create", "playbooks")
    assert server.requests == []


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
    assert f"the answer is {answer['status']} with {answer['content_type']}" in errors
    assert "TOCSIN_URL" in errors


async def test_json_of_another_service_is_not_taken_for_tocsin(answering, refused):
    url = await answering(text='{"ok": true}', content_type="application/json")
    assert "the answer holds no 'api_keys'" in await refused("keys", "list", "--url", url)
    create = ("clients", "create", "soar", "--scope", "graph:read", "--url", url)
    assert "the answer holds no 'client_id'" in await refused(*create)


async def test_a_redirect_is_told_and_not_followed(answering, refused, server, url):
    elsewhere = await answering(status=307, headers={"Location": f"{url}/api/admin/api-keys"})
    errors = await refused("keys", "list", "--url", elsewhere)
    assert f"the answer is 307 with no type, which leads to {url}" in errors
    assert server.requests == []


async def test_where_nothing_answers_it_is_said_what_to_look_at(refused, unused_tcp_port):
    url = f"http://127.0.0.1:{unused_tcp_port}"
    errors = await refused("keys", "list", "--url", url)
    assert f"port {unused_tcp_port}: cannot connect; see that Tocsin runs there" in errors
    assert "repeat" not in errors
    assert "look before you repeat it" in await refused("keys", "disable", "K1", "--url", url)


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
    ],
)
async def test_a_wrong_url_is_said_to_be_one(refused, url):
    errors = await refused("keys", "list", "--url", url)
    assert "--url (or TOCSIN_URL, TOCSIN_BASE_URL): " in errors
    assert "hunter2" not in errors


async def test_a_proxy_of_the_environment_is_not_used(run, server, url):
    proxy = {"http_proxy": "http://127.0.0.1:1", "HTTP_PROXY": "http://127.0.0.1:1"}
    variables = {"TOCSIN_URL": url, "TOCSIN_ADMIN_TOKEN": TOKEN} | proxy
    assert (await run("keys", "list", **variables))[0] == 0


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


async def test_https_needs_a_certificate_that_is_trusted(aiohttp_server, server, certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    served = await aiohttp_server(server.app(), ssl=context)
    program = "import sys; from tocsin.cli import keys; keys.app(['list'])"

    async def run(**variables: str) -> subprocess.CompletedProcess:
        url = f"https://127.0.0.1:{served.port}"
        return await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-c", program],
            env=os.environ | {"TOCSIN_URL": url, "TOCSIN_ADMIN_TOKEN": TOKEN} | variables,
            capture_output=True,
            text=True,
            check=False,
        )

    untrusted, trusted = await asyncio.gather(run(), run(SSL_CERT_FILE=str(certificate)))
    assert "TLS certificate not valid" in untrusted.stderr
    assert trusted.returncode == 0
    assert len(server.requests) == 1
