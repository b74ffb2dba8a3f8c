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
from end_to_end.service import SECRET
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


HOME = "https://\u03b1\u03c2-1.example:8443/hooks"
AWAY = (
    # Greek capitals whose lower case is another name than the one that is resolved
    "https://\u0391\u03a3-1.example:8443/hooks",
    "https://\u03b1\u03c3-1.example:8443/hooks",
    "https://\u03b1\u03c2-1.example/hooks",
    "https://\u03b1\u03c2-1.example:443/hooks",
    "https://\u03b1\u03c2-1.example:8444/hooks",
    "http://\u03b1\u03c2-1.example:8443/hooks",
    "https://\u03b1\u03c2-1.example.:8443/hooks",
    "https://\u03b1\u03c2-1.example.evil.example:8443/hooks",
    "https://\u03b1\u03c2-1.example@evil.example:8443/hooks",
    "https://\u03b1\u03c2-1.example:8443@evil.example/hooks",
    "https://evil.example:8443/\u03b1\u03c2-1.example:8443/hooks",
    "https://evil.example:8443\\@\u03b1\u03c2-1.example:8443/hooks",
    "https://\u03b1\u03c2-1.example:8443\\@evil.example/hooks",
    "https://\u03b1\u03c2-1.example%2eevil.example:8443/hooks",
    "https://evil.example#@\u03b1\u03c2-1.example:8443/hooks",
    "https://evil.example?@\u03b1\u03c2-1.example:8443/hooks",
    "https:\u03b1\u03c2-1.example:8443/hooks",
    "https:///\u03b1\u03c2-1.example:8443/hooks",
    "//\u03b1\u03c2-1.example:8443/hooks",
    "https://\u03b1\u03c2-1\u3002example\u3002evil.example:8443/hooks",
    "https://[::ffff:192.0.2.1]:8443/hooks",
    "https://[2001:db8::1]:8443/hooks",
    "https://[2001:db8::1%25eth0]:8443/hooks",
    "https://\u03b1\u03c2-1.example:08443 /hooks",
    "https://\u03b1\u03c2-1.example:8443\t.evil.example/hooks",
    "https://\u03b1\u03c2-1.example:8443\r\nHost: evil.example/hooks",
    "https://xn--mxa7a-1.example:8443/hooks",
    "https://\u0430\u03c2-1.example:8443/hooks",
    "https://2130706433:8443/hooks",
    "wss://\u03b1\u03c2-1.example:8443/hooks",
    "file:///etc/passwd",
    "gopher://\u03b1\u03c2-1.example:8443/hooks",
)


class Listener(TestServer):
    """A server that keeps the `Authorization` of every request, and answers with a status."""

    def __init__(self, status: int, location: str = "") -> None:
        self.credentials: list[str | None] = []
        self._status = status
        self._headers = {"Location": location} if location else None
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._take)
        super().__init__(app)

    async def _take(self, request: web.Request) -> web.Response:
        self.credentials.append(request.headers.get("Authorization"))
        return web.json_response({"message": "no"}, status=self._status, headers=self._headers)


@pytest.fixture
async def admin(database, clock):
    channels = {"ticketing": Ticketing, "webhook": Webhook}
    configuration = replace(CONFIGURATION, channels=channels)
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


@pytest.fixture
async def hooks(admin):
    """The path of a webhook with kept secrets of every kind."""
    secrets = {"secret": SECRET, "headers": {"X-Token": TOKEN}, "body_secrets": {"key": TOKEN}}
    settings = {"url": HOME, **secrets}
    body = {"name": "hooks", "plugin": "webhook", "settings": settings}
    await admin.ask("POST", DESTINATIONS, 201, json=body)
    return f"{DESTINATIONS}/hooks"


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_no_spelling_of_another_server_keeps_the_secrets(admin, hooks, record_property):
    for url in AWAY:
        refused = await admin.send("PATCH", hooks, json={"settings": {"url": url}})
        assert refused.status == 422, url
        refused = await admin.send(
            "PATCH", hooks, json={"settings": {"url": None, "secret_url": url}}
        )
        assert refused.status == 422, url
        for secret in ({"secret": SECRET}, {"headers": {}, "body_secrets": {}}):
            change = {"settings": {"url": url, **secret}}
            assert (await admin.send("PATCH", hooks, json=change)).status == 422, url
    for name in ("ca_file", "client_certificate", "client_key", "proxy"):
        value = "http://evil.example:3128" if name == "proxy" else "/etc/passwd"
        change = {"settings": {name: value}}
        assert (await admin.send("PATCH", hooks, json=change)).status == 422, name
    stored = await admin.ask("GET", hooks, 200)
    assert stored["settings"]["url"] == HOME
    assert stored["secrets"] == ["body_secrets", "headers", "secret"]
    await admin.ask("PATCH", hooks, 200, json={"settings": {"url": HOME.upper().lower()}})
    record_property("cases", 4 * len(AWAY) + 4)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_destination_that_is_made_again_has_no_secrets_of_the_former_one(admin, hooks):
    await admin.ask("DELETE", hooks, 200)
    body = {"name": "hooks", "plugin": "webhook", "settings": {"url": HOME, "secret": SECRET}}
    made = await admin.send("POST", DESTINATIONS, json=body)
    assert made.status == 409 or (await made.json())["secrets"] == ["secret"]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_takes_no_secret_to_another_server(admin, status):
    async with Listener(200) as elsewhere, Listener(status, str(elsewhere.make_url("/"))) as home:
        tracker = {"tracker": "github", "project": "soc/alerts", "secret": TOKEN}
        settings = tracker | {"url": str(home.make_url("/")), "allow_networks": ["127.0.0.0/8"]}
        body = {"name": "tickets", "plugin": "ticketing", "settings": settings}
        await admin.send("POST", DESTINATIONS, json=body)
        assert any(TOKEN in str(credential) for credential in home.credentials)
        assert elsewhere.credentials == []


def test_urls_inside_lists_and_tables_are_targets():
    class Settings(Channel.Settings):
        servers: tuple[str, ...]
        options: dict[str, SecretStr]

    options = {"site": SecretStr("https://[2001:DB8::1]/x")}
    settings = Settings.model_construct(servers=("https://a.example", "b"), options=options)
    expected = {"servers.0": "https://a.example:443", "options.site": "https://[2001:db8::1]:443"}
    assert settings.targets() == expected


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
