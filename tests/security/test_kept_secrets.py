"""Kept secrets of destinations: no server but the one that they were given for receives them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points

import pytest
import structlog
from aiohttp import web
from aiohttp.test_utils import TestServer
from multidict import CIMultiDict
from pydantic import SecretStr

from api_callers import Admin
from api_server import CONFIGURATION, open_api
from end_to_end.service import SECRET
from tocsin import Channel, HttpResponse, TocsinError, Tools
from tocsin.servers import find_server
from tocsin.testing import make_settings
from tocsin_connectors.soar.iris import Iris
from tocsin_connectors.soar.sentinel_incidents import SentinelIncidents
from tocsin_connectors.soar.splunk_soar import SplunkSoar
from tocsin_connectors.soar.thehive import TheHive
from tocsin_connectors.soar.xsoar import Xsoar
from tocsin_plugins.email import Email
from tocsin_plugins.slack import Slack
from tocsin_plugins.ticketing import Ticketing
from tocsin_plugins.ticketing.channel import load_tracker
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


SERVER = "https://server.example:8443"
TRACKERS = {
    "github": {"project": "soc/alerts"},
    "gitlab": {"project": "soc/alerts"},
    "jira-cloud": {"project": "SOC", "username": "bot@example.com"},
    "jira-data-center": {"project": "SOC"},
    "request-tracker": {"project": "General"},
    "roundup": {"project": "issue", "username": "bot"},
    "servicenow": {"project": "incident", "username": "bot"},
    "zendesk": {"project": "SOC", "username": "bot@example.com"},
}
AZURE = {"tenant": "t", "client_id": "c", "client_secret": TOKEN, "subscription": "0" * 36}
CHANNELS = {
    "iris": (Iris, {"url": SERVER, "api_key": TOKEN, "customer": 1}),
    "sentinel": (SentinelIncidents, AZURE | {"resource_group": "g", "workspace": "logs"}),
    "slack": (Slack, {"bot_token": "xoxb-1-2-abc", "channel": "C0123456789"}),
    "splunk-soar": (SplunkSoar, {"url": SERVER, "token": TOKEN}),
    "thehive": (TheHive, {"url": SERVER, "api_key": TOKEN}),
    "xsoar": (Xsoar, {"url": SERVER, "api_key": TOKEN}),
    **{
        tracker: (Ticketing, {"tracker": tracker, "url": SERVER, "secret": TOKEN, **given})
        for tracker, given in TRACKERS.items()
    },
}


class RecordingClient:
    """An HTTP client that keeps the server of each request, and answers with a bit of anything."""

    def __init__(self) -> None:
        self.servers: set[str | None] = set()

    def check_url(self, url: str) -> None:
        self.servers.add(find_server(url))

    async def vet_url(self, url: str) -> None:
        self.check_url(url)

    async def request(self, _method: str, url: str, **_options: object) -> HttpResponse:
        self.check_url(url)
        body = b'{"access_token": "a", "token_type": "Bearer", "expires_in": 3600, "ok": true}'
        headers = CIMultiDict({"Content-Type": "application/json"})
        return HttpResponse(status=200, headers=headers, body=body, truncated=False)


@pytest.mark.parametrize(("kind", "given"), CHANNELS.values(), ids=CHANNELS)
async def test_a_channel_sends_requests_to_its_targets_alone(clock, kind, given):
    settings = make_settings(kind, given.get("tracker", "soc"), **given)
    client = RecordingClient()
    log = structlog.get_logger()
    channel = kind(settings, Tools(name="soc", http=client, clock=clock, log=log))
    with suppress(TocsinError, LookupError, TypeError):  # of answers that say nothing
        await channel.check()
    assert client.servers
    assert client.servers <= set(settings.targets().values())


def test_only_the_tracker_that_is_named_is_imported(monkeypatch):
    loaded = []
    load = EntryPoint.load
    monkeypatch.setattr(EntryPoint, "load", lambda point: loaded.append(point.name) or load(point))
    load_tracker.cache_clear()
    load_tracker("zendesk")
    assert loaded == ["zendesk"]


def test_every_tracker_is_tried():
    assert {entry_point.name for entry_point in entry_points(group="tocsin.trackers")} == {
        *TRACKERS
    }


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


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_port_that_is_removed_is_another_server(database, clock):
    configuration = replace(CONFIGURATION, channels={"email": Email})
    async with open_api(database, clock, configuration) as api:
        admin = Admin(api, await api.admin())
        account = {"username": "tocsin", "password": TOKEN}
        letters = {"sender": "tocsin@example.com", "to": ["soc@example.com"]}
        inside = {"allow_networks": ["127.0.0.0/8"]}
        settings = {"host": "127.0.0.1", "port": 9, **account, **letters, **inside}
        body = {"name": "mails", "plugin": "email", "settings": settings}
        await admin.ask("POST", DESTINATIONS, 201, json=body)
        change = {"settings": {"port": None}}
        refused = await admin.send("PATCH", f"{DESTINATIONS}/mails", json=change)
        assert refused.status == 422
        assert "`port` changes from 9 to its default" in await refused.text()
