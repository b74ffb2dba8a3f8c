"""The log at level `debug`: it tells of requests, and holds no secret of any of them."""

from __future__ import annotations

import base64
import io
import json
import logging
import sys

import pytest
import structlog
from aiohttp import web
from aiohttp.test_utils import TestServer

from api_callers import Admin
from api_server import PUSH_TOKEN, PUSHED
from console import Person
from tocsin.credentials import Scope
from tocsin.logs import configure_logs

SECRETS = {
    "header": "Bearer header-0123456789",
    "routing_key": "routing-0123456789",
    "path": "path-0123456789",
    "query": "query-0123456789",
    "signing": base64.b64encode(b"signing-0123456789-signing").decode(),
}


@pytest.fixture
def log(monkeypatch):
    """Everything that is logged at level `debug`, also by libraries."""
    monkeypatch.setattr(sys, "stderr", written := io.StringIO())
    before, root = structlog.get_config(), logging.getLogger()
    handlers, level = root.handlers[:], root.level
    configure_logs("json", "debug")
    structlog.configure(cache_logger_on_first_use=False)
    _forget_cached_loggers()
    yield written
    structlog.configure(**before)
    root.handlers[:] = handlers
    root.setLevel(level)


def _forget_cached_loggers() -> None:
    """Have loggers of modules that were used before follow the configuration."""
    for name, module in list(sys.modules.items()):
        if name.startswith("tocsin"):
            vars(getattr(module, "_log", module)).pop("bind", None)


async def fail(_request: web.Request) -> web.Response:
    return web.json_response({}, status=500)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_the_debug_log_tells_of_requests_and_holds_no_secret(log, api):
    admin = Admin(api, await api.admin())
    secrets = [*SECRETS.values(), admin.headers["Authorization"].partition(" ")[2], PUSH_TOKEN]
    secrets += [key := await api.key(*Scope), token := await api.access_token(*Scope)]
    app = web.Application()
    app.router.add_post("/{path:.*}", fail)
    async with TestServer(app) as server:
        url = server.make_url(f"/{SECRETS['path']}").with_query(token=SECRETS["query"])
        settings = {
            "secret_url": str(url),
            "headers": {"Authorization": SECRETS["header"]},
            "body_secrets": {"routing_key": SECRETS["routing_key"]},
            "secret": f"whsec_{SECRETS['signing']}",
            "allow_networks": ["127.0.0.0/8"],
        }
        body = {"name": "soar", "plugin": "webhook", "settings": settings}
        await admin.ask("POST", "/api/admin/destinations", 201, json=body)
        await admin.ask("POST", "/api/admin/destinations/soar/test")
    created = await admin.create_key()
    client = await admin.create_client()
    secrets += [created["api_key"], client["client_secret"]]
    person = Person(api)
    await person.sign_in()
    secrets.append(person.cookie.partition("=")[2])
    await person.html("/")
    get, post = api.client.get, api.client.post
    await get("/api/v1/incidents", headers={"X-API-Key": key})
    await get(f"/api/v1/incidents?api_key={key}", headers={"Authorization": f"Bearer {token}"})
    await get(f"/nowhere/{key}")
    await post(f"/api/push/{PUSHED}", json={}, headers={"Authorization": f"Bearer {PUSH_TOKEN}"})
    await post("/oauth/token", data=client | {"grant_type": "client_credentials"})
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    told = {(line["event"], line.get("path") or line.get("to")) for line in lines}
    assert ("request served", "/api/v1/incidents") in told
    assert ("request sent", str(url.origin())) in told
    text = log.getvalue()
    assert [secret for secret in secrets if secret in text or secret[:24] in text] == []


def test_lines_below_the_level_are_left_out(monkeypatch):
    monkeypatch.setattr(sys, "stderr", written := io.StringIO())
    before = structlog.get_config()
    try:
        configure_logs("json", "warning")
        structlog.get_logger().info("delivered")
        structlog.get_logger().warning("not ready")
    finally:
        structlog.configure(**before)
    assert [json.loads(line)["event"] for line in written.getvalue().splitlines()] == ["not ready"]
