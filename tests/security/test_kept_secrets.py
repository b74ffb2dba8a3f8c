"""Kept secrets of destinations: no server but the one that they were given for receives them."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import entry_points

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from pydantic import SecretStr

from api_callers import Admin
from api_server import CONFIGURATION, open_api
from tocsin import Channel
from tocsin_connectors.soar.iris import Iris
from tocsin_connectors.soar.sentinel_incidents import SentinelIncidents
from tocsin_connectors.soar.splunk_soar import SplunkSoar
from tocsin_connectors.soar.thehive import TheHive
from tocsin_connectors.soar.xsoar import Xsoar
from tocsin_plugins.email import Email
from tocsin_plugins.slack import Slack
from tocsin_plugins.ticketing import Ticketing
from tocsin_plugins.webhook import Webhook

DESTINATIONS = "/api/admin/destinations"
TOKEN = "ghp_0123456789abcdef0123456789abcdef"
URL_FIELDS = {
    Iris: ["url"],
    SentinelIncidents: ["url", "authority"],
    Slack: ["api_url", "webhook_url"],
    SplunkSoar: ["url"],
    TheHive: ["url"],
    Ticketing: ["url"],
    Webhook: ["url", "secret_url"],
    Xsoar: ["url"],
}


class Listener(TestServer):
    """A server that keeps the `Authorization` of every request, and answers with a status."""

    def __init__(self, status: int) -> None:
        self.credentials: list[str | None] = []
        self._status = status
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._take)
        super().__init__(app)

    async def _take(self, request: web.Request) -> web.Response:
        self.credentials.append(request.headers.get("Authorization"))
        return web.json_response({"message": "no"}, status=self._status)


@pytest.fixture
async def admin(database, clock):
    configuration = replace(CONFIGURATION, channels={"ticketing": Ticketing})
    async with open_api(database, clock, configuration) as api:
        yield Admin(api, await api.admin())


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_tracker_that_moves_sends_its_kept_token_to_nobody(admin):
    async with Listener(503) as home, Listener(404) as elsewhere:
        tracker = {"tracker": "github", "project": "soc/alerts", "secret": TOKEN}
        settings = tracker | {"url": str(home.make_url("/")), "allow_networks": ["127.0.0.0/8"]}
        body = {"name": "tickets", "plugin": "ticketing", "settings": settings}
        await admin.ask("POST", DESTINATIONS, 201, json=body)
        path, url = f"{DESTINATIONS}/tickets", str(elsewhere.make_url("/"))

        refused = await admin.send("PATCH", path, json={"settings": {"url": url}})
        assert refused.status == 422
        assert "settings.secret" in await refused.text()
        assert elsewhere.credentials == []

        await admin.send("PATCH", path, json={"settings": {"url": url, "secret": "new"}})
        assert elsewhere.credentials
        assert not any(TOKEN in str(credential) for credential in elsewhere.credentials)
        [contact, *_] = await admin.audited()  # also of what was refused
        assert contact["action"] == "destination.contact"
        assert contact["details"]["targets"] == [url.rstrip("/")]


@pytest.mark.parametrize("kind", URL_FIELDS)
def test_every_url_of_a_channel_is_a_target(kind):
    for field in URL_FIELDS[kind]:
        wrap = SecretStr if field in kind.Settings.secret_fields() else str
        settings = kind.Settings.model_construct(**{field: wrap("https://u:p@A.example/x?y")})
        assert settings.targets()[field] == "https://a.example:443"


def test_every_channel_with_secrets_is_listed():
    assert {kind for kind in _find_channels() if kind.Settings.secret_fields()} == {
        *URL_FIELDS,
        Email,
    }


def _find_channels() -> set[type[Channel]]:
    loaded = (entry_point.load() for entry_point in entry_points(group="tocsin.plugins"))
    found = (vars(plugin).values() for plugin in loaded)
    return {
        each
        for values in found
        for each in values
        if isinstance(each, type) and issubclass(each, Channel) and each is not Channel
    }


@pytest.mark.parametrize(("field", "value"), [("host", "b"), ("port", 25), ("tls", "none")])
def test_host_port_and_encryption_of_a_mail_server_are_targets(field, value):
    server = {"host": "a", "port": 587, "tls": "starttls"}
    before = Email.Settings.model_construct(**server)
    after = Email.Settings.model_construct(**(server | {field: value}))
    assert before.targets() != after.targets()
