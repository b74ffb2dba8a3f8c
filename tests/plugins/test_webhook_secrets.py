"""Secrets that only the receiver may know: secret URLs, and members of the body."""

import json
import logging
from ipaddress import ip_network

import pytest
import structlog
from aiohttp import web
from pydantic import ValidationError

from tocsin import Delivery, Event, EventType, Misconfigured, Tools, TryLater
from tocsin.clock import SystemClock
from tocsin.fields import SettingsOrigin
from tocsin.net import open_client
from tocsin.redaction import Redactor
from tocsin_plugins.webhook import Webhook

SIGNING = "whsec_" + "QUJD" * 10
ROUTING_KEY = "e93facc04764012d7bfb002500d5d1a6"
PATH = "/services/T0001/B0001/XXXXXXXXXXXXXXXXXXXXXXXX"
TOKEN = "tok-4f1d2c3b4a596877"


def settings(folder=None, **given):
    given = {"plugin": "webhook", "secret": SIGNING, **given}
    if folder is not None:
        (folder / "signing").write_text(SIGNING)
        given["secret"] = {"file": "signing"}
    return Webhook.Settings.model_validate(given, context=SettingsOrigin(folder).context())


def wrong(folder=None, **given):
    with pytest.raises(ValidationError) as caught:
        settings(folder, **given)
    return str(caught.value)


# --- settings


@pytest.mark.parametrize("name", ["url", "secret_url"])
def test_in_a_file_a_secret_url_is_a_reference(tmp_path, monkeypatch, name):
    monkeypatch.setenv("CHAT_URL", f"https://chat.example.com{PATH}")
    made = settings(tmp_path, **{name: {"env": "CHAT_URL"}})
    assert made.address == f"https://chat.example.com{PATH}"
    assert made.url is None
    assert PATH not in repr(made) + str(made) + made.model_dump_json()


def test_over_http_a_secret_url_is_text_and_one_of_the_secrets():
    made = settings(secret_url=f"https://chat.example.com{PATH}")
    assert made.address.endswith(PATH)
    assert {"secret_url", "body_secrets"} <= Webhook.Settings.secret_fields()
    assert "url" not in Webhook.Settings.secret_fields()


def test_there_is_one_url():
    assert "set either url or, if the URL itself" in wrong()
    both = {"url": "https://a.example.com/", "secret_url": "https://b.example.com/"}
    assert "set either url or, if the URL itself" in wrong(**both)


def test_what_is_written_out_in_a_file_is_refused(tmp_path):
    assert "secret_url" in wrong(tmp_path, secret_url="https://chat.example.com/hook")
    key = {"routing_key": ROUTING_KEY}
    said = wrong(tmp_path, url="https://a.example.com/", body_secrets=key)
    assert "body_secrets" in said
    assert ROUTING_KEY not in said


@pytest.mark.parametrize(
    "url",
    [
        "ftp://chat.example.com" + PATH,
        "https://chat.example.com:port" + PATH,
        "https://[::1" + PATH,
        "https://user:hunter2@chat.example.com" + PATH,
        "https://chat.example.com/a b" + PATH,
    ],
)
def test_what_is_wrong_with_a_secret_url_is_said_without_it(url):
    text = wrong(secret_url=url)
    assert "secret_url" in text
    assert PATH not in text
    assert "hunter2" not in text


def test_a_plain_secret_url_needs_an_allowed_network():
    assert "https://" in wrong(secret_url="http://chat.internal" + PATH)


def test_a_secret_of_the_body_is_long_enough_to_be_told_from_other_text():
    assert "8 characters" in wrong(url="https://a.example.com/", body_secrets={"key": "1234567"})


# --- deliveries


class Echo:
    """A receiver whose response contains the whole request."""

    def __init__(self):
        self.bodies = []
        self.status = 200

    async def handle(self, request):
        self.bodies.append(await request.read())
        text = f"{request.rel_url} {self.bodies[-1].decode()}"
        return web.Response(status=self.status, text=text)


@pytest.fixture
async def echo(aiohttp_server):
    echo = Echo()
    application = web.Application()
    application.router.add_post(PATH, echo.handle)
    echo.url = str((await aiohttp_server(application)).make_url(f"{PATH}?wait=true&token={TOKEN}"))
    return echo


@pytest.fixture
async def channel(echo):
    client = open_client(allow_networks=[ip_network("127.0.0.0/8")])

    def channel(**given):
        made = settings(allow_networks=["127.0.0.0/8"], **given)
        log = structlog.get_logger("soc")
        return Webhook(made, Tools(name="soc", http=client, clock=SystemClock(), log=log))

    yield channel
    await client.close()


def delivery(body):
    event = Event(
        id="evt_1",
        event_type=EventType.INCIDENT_ALERT,
        timestamp=SystemClock().now(),
        data={},
        subject="incident:7",
    )
    return Delivery(id="dlv_1", event=event, attempt=1, remote_id=None, render=lambda _: body)


async def test_secrets_are_put_into_the_body_and_taken_out_of_what_is_kept(channel, echo):
    webhook = channel(secret_url=echo.url, body_secrets={"routing_key": ROUTING_KEY})
    receipt = await webhook.deliver(delivery(b'{"event_action":"trigger"}'))
    assert [json.loads(body) for body in echo.bodies] == [
        {"event_action": "trigger", "routing_key": ROUTING_KEY}
    ]
    kept = Redactor(webhook.list_secrets()).clean_bytes(receipt.response).decode()
    assert kept == (
        '[secret]?wait=true&token=[secret] {"event_action":"trigger","routing_key":"[secret]"}'
    )


async def test_a_member_that_a_template_writes_itself_gives_way(channel, echo):
    webhook = channel(secret_url=echo.url, body_secrets={"routing_key": ROUTING_KEY})
    await webhook.deliver(delivery(b'{"routing_key":"from a template"}'))
    assert json.loads(echo.bodies[0]) == {"routing_key": ROUTING_KEY}


@pytest.mark.parametrize("body", [b"[]", b'"text"', b"no JSON"])
async def test_a_body_without_members_takes_no_secret(channel, echo, body):
    webhook = channel(secret_url=echo.url, body_secrets={"routing_key": ROUTING_KEY})
    with pytest.raises(Misconfigured, match="JSON object"):
        await webhook.deliver(delivery(body))
    assert echo.bodies == []


async def test_an_answer_to_a_url_that_is_no_secret_is_kept_as_it_is(channel, echo):
    webhook = channel(url=echo.url)
    receipt = await webhook.deliver(delivery(b"{}"))
    assert TOKEN in Redactor(webhook.list_secrets()).clean_bytes(receipt.response).decode()


async def test_secrets_show_nowhere(channel, echo, caplog):
    caplog.set_level(logging.DEBUG)
    echo.status = 400
    webhook = channel(secret_url=echo.url, body_secrets={"routing_key": ROUTING_KEY})
    with pytest.raises(TryLater) as caught:
        await webhook.deliver(delivery(b"{}"))
    health = await webhook.check()
    kept = Redactor(webhook.list_secrets()).clean_bytes(caught.value.response).decode()
    shown = (repr(webhook.settings), repr(vars(webhook)), kept)
    ours = (record.getMessage() for record in caplog.records if record.name != "aiohttp.access")
    shown += (repr(caught.value), repr(health), *ours)
    for secret in (ROUTING_KEY, PATH, TOKEN):
        assert secret not in " ".join(shown)


async def test_check_names_the_setting_that_is_wrong(channel):
    health = await channel(secret_url="https://10.0.0.1" + PATH).check()
    assert health.problems[0].startswith("secret_url: ")
    assert PATH not in repr(health)
