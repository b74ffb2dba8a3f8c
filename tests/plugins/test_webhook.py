"""Webhook channel with real receivers on loopback, which verify with third-party libraries."""

import asyncio
import base64
import json
import logging
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import standardwebhooks
import structlog
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from signatures import svix_webhook
from tocsin import Delivery, Event, EventType, Misconfigured, Refused, Tools, TryLater
from tocsin.fields import SettingsOrigin
from tocsin.net import open_client
from tocsin_plugins.webhook import Webhook

# The published test vectors of Standard Webhooks.
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
KEY = (
    "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg=="
)
PUBLIC_KEY = "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4="
OLDER = "whsec_" + base64.b64encode(b"o" * 32).decode()
OLDER_KEY = "whsk_" + base64.b64encode(b"o" * 32).decode()
EVENT_ID = "01JD5N0T2Q7XGQ0V8Q2K4W9B3C"


class StoppedClock:
    """Clock that stays at its time of creation, because receivers compare with their own clock."""

    def __init__(self, moment=None):
        self.moment = moment or datetime.now(UTC)

    def now(self):
        return self.moment

    async def sleep(self, duration):
        self.moment += duration


def delivery(body=b'{"event_type":"incident-alert"}', attempt=1, event_id=EVENT_ID):
    event = Event(
        id=event_id,
        event_type=EventType.INCIDENT_ALERT,
        timestamp=datetime(2026, 11, 21, tzinfo=UTC),
        data={},
        subject="incident:7",
    )
    return Delivery(
        id="01JD5N0T2R", event=event, attempt=attempt, remote_id=None, render=lambda part: body
    )


def public_key_of(seed):
    public = Ed25519PrivateKey.from_private_bytes(seed).public_key()
    return "whpk_" + base64.b64encode(public.public_bytes_raw()).decode()


def verify_v1a(public_key, headers, body, position=0):
    key = Ed25519PublicKey.from_public_bytes(base64.b64decode(public_key.removeprefix("whpk_")))
    scheme, signature = headers["webhook-signature"].split()[position].split(",")
    assert scheme == "v1a"
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    key.verify(base64.b64decode(signature), signed)


class Receiver:
    """A server that stores requests and returns the configured responses."""

    def __init__(self):
        self.got = []
        self.answer = {"status": 204}
        self.delay = 0

    async def handle(self, request):
        await asyncio.sleep(self.delay)
        self.got.append((request.headers, await request.read()))
        return web.Response(**self.answer)


@pytest.fixture
async def receiver(aiohttp_server):
    receiver = Receiver()
    application = web.Application()
    application.router.add_post("/hook", receiver.handle)
    receiver.url = str((await aiohttp_server(application)).make_url("/hook"))
    return receiver


@pytest.fixture
async def channel(receiver):
    clients = []

    def channel(moment=None, public_url="", **given):
        defaults = {"plugin": "webhook", "url": receiver.url, "secret": SECRET}
        given = {**defaults, "allow_networks": ["127.0.0.0/8"], **given}
        settings = Webhook.Settings.model_validate(given, context=SettingsOrigin().context())
        clients.append(open_client(allow_networks=settings.allow_networks))
        tools = Tools(
            name="soc",
            http=clients[-1],
            clock=StoppedClock(moment),
            log=structlog.get_logger("soc"),
            public_url=public_url,
        )
        return Webhook(settings, tools)

    yield channel
    for client in clients:
        await client.close()


# --- deliveries


async def test_a_receiver_can_verify_what_it_gets(channel, receiver):
    body = '{"title":"“quoted” \\u202e 🔔"}'.encode()
    receipt = await channel().deliver(delivery(body))
    assert (receipt.status, receipt.response) == (204, b"")
    [(headers, received)] = receiver.got
    assert received == body
    assert headers["content-type"] == "application/json"
    assert headers["webhook-id"] == EVENT_ID
    standardwebhooks.Webhook(SECRET).verify(received, headers)
    svix_webhook(SECRET).verify(received, headers)


@pytest.mark.parametrize("secret", [SECRET, OLDER])
@pytest.mark.parametrize("library", [standardwebhooks.Webhook, svix_webhook])
async def test_both_secrets_verify_during_a_rotation(channel, receiver, secret, library):
    await channel(secret=SECRET, previous_secret=OLDER).deliver(delivery())
    [(headers, body)] = receiver.got
    library(secret).verify(body, headers)


async def test_after_a_rotation_the_older_secret_verifies_nothing(channel, receiver):
    await channel(secret=SECRET).deliver(delivery())
    [(headers, body)] = receiver.got
    with pytest.raises(standardwebhooks.WebhookVerificationError):
        standardwebhooks.Webhook(OLDER).verify(body, headers)


async def test_both_schemes_sign_as_published(channel, receiver):
    sent_at = datetime.fromtimestamp(1614265330, UTC)
    webhook = channel(moment=sent_at, secret=SECRET, signing_key=KEY)
    await webhook.deliver(
        delivery(b'{"test": 2432232314}', event_id="msg_p5jXN8AQM9LWM0D4loKWxJek")
    )
    [(headers, _)] = receiver.got
    assert headers["webhook-signature"] == (
        "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE= "
        "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg=="
    )


async def test_a_signing_key_is_enough(channel, receiver):
    await channel(secret=None, signing_key=KEY).deliver(delivery())
    [(headers, body)] = receiver.got
    verify_v1a(PUBLIC_KEY, headers, body)


async def test_all_keys_sign_and_the_current_ones_first(channel, receiver):
    await channel(
        previous_signing_key=OLDER_KEY, signing_key=KEY, previous_secret=OLDER, secret=SECRET
    ).deliver(delivery())
    [(headers, body)] = receiver.got
    signatures = headers["webhook-signature"].split()
    assert [signature.split(",")[0] for signature in signatures] == ["v1", "v1a", "v1", "v1a"]
    for secret, position in ((SECRET, 0), (OLDER, 2)):
        alone = {**headers, "webhook-signature": signatures[position]}
        svix_webhook(secret).verify(body, alone)
    verify_v1a(PUBLIC_KEY, headers, body, position=1)
    verify_v1a(public_key_of(b"o" * 32), headers, body, position=3)


async def test_attempts_share_their_id_and_have_times_of_their_own(channel, receiver):
    webhook = channel()
    await webhook.deliver(delivery())
    await webhook.tools.clock.sleep(timedelta(minutes=3))
    await webhook.deliver(delivery(attempt=2))
    (first, _), (second, body) = receiver.got
    assert first["webhook-id"] == second["webhook-id"]
    assert int(second["webhook-timestamp"]) - int(first["webhook-timestamp"]) == 180
    standardwebhooks.Webhook(SECRET).verify(body, second)


@pytest.mark.parametrize(("context", "epoch"), [({"epoch": 2}, "2"), ({}, None)])
async def test_the_epoch_of_the_database_is_sent(channel, receiver, context, epoch):
    stored = delivery()
    stored = replace(stored, event=replace(stored.event, context=context))
    await channel(secret=SECRET).deliver(stored)
    assert receiver.got[0][0].get("tocsin-epoch") == epoch


async def test_more_headers_are_sent(channel, receiver):
    await channel(headers={"X-Team": "SOC, first line"}).deliver(delivery())
    [(headers, _)] = receiver.got
    assert headers["X-Team"] == "SOC, first line"


# --- CloudEvents


async def test_a_binary_cloudevent_is_signed_as_sent(channel, receiver):
    body = '{"title":"é"}'.encode()
    webhook = channel(
        cloudevents="binary", public_url="https://tocsin.example.com", signing_key=KEY
    )
    await webhook.deliver(delivery(body))
    [(headers, received)] = receiver.got
    assert received == body
    assert headers["content-type"] == "application/json"
    assert headers["ce-specversion"] == "1.0"
    assert headers["ce-id"] == headers["webhook-id"] == EVENT_ID
    assert headers["ce-source"] == "https://tocsin.example.com"
    assert headers["ce-type"] == "tocsin.incident-alert"
    assert headers["ce-subject"] == "incident:7"
    svix_webhook(SECRET).verify(received, headers)
    verify_v1a(PUBLIC_KEY, headers, received, position=1)


async def test_a_structured_cloudevent_is_signed_as_sent(channel, receiver):
    webhook = channel(cloudevents="structured", signing_key=KEY)
    await webhook.deliver(delivery(b'{"title":"a"}'))
    [(headers, received)] = receiver.got
    assert headers["content-type"] == "application/cloudevents+json"
    assert json.loads(received)["data"] == {"title": "a"}
    assert json.loads(received)["source"] == "tocsin"
    assert not any(name.lower().startswith("ce-") for name in headers)
    svix_webhook(SECRET).verify(received, headers)
    verify_v1a(PUBLIC_KEY, headers, received, position=1)


# --- answers


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
async def test_any_2xx_is_a_receipt(channel, receiver, status):
    receiver.answer = {"status": status, "body": b"" if status == 204 else b"taken"}
    receipt = await channel().deliver(delivery())
    assert receipt.status == status
    assert receipt.response == receiver.answer["body"]


@pytest.mark.parametrize("status", [300, 301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed_and_tried_again(channel, receiver, status):
    receiver.answer = {"status": status, "headers": {"Location": receiver.url}}
    with pytest.raises(TryLater, match=f"the receiver returned {status}"):
        await channel().deliver(delivery())
    assert len(receiver.got) == 1


@pytest.mark.parametrize(
    ("status", "throttled"), [(400, False), (409, False), (429, True), (502, True), (503, False)]
)
async def test_any_other_status_is_tried_again(channel, receiver, status, throttled):
    receiver.answer = {"status": status, "body": b"no", "headers": {"Retry-After": "120"}}
    with pytest.raises(TryLater) as caught:
        await channel().deliver(delivery())
    assert (caught.value.status, caught.value.response) == (status, b"no")
    assert caught.value.after == timedelta(minutes=2)
    assert caught.value.throttled == throttled


@pytest.mark.parametrize(
    ("status", "headers", "unwanted"),
    [
        (410, {}, True),
        (400, {"Webhook-Delivery": "Disable"}, True),
        (500, {"Webhook-Delivery": "abort-message"}, False),
    ],
)
async def test_a_receiver_can_end_it(channel, receiver, status, headers, unwanted):
    receiver.answer = {"status": status, "body": b"bye", "headers": headers}
    with pytest.raises(Refused, match=f"the receiver returned {status}") as caught:
        await channel().deliver(delivery())
    assert (caught.value.status, caught.value.response) == (status, b"bye")
    assert caught.value.unwanted == unwanted


async def test_of_a_long_answer_16_kib_are_kept(channel, receiver):
    receiver.answer = {"status": 500, "body": b"x" * 100_000}
    with pytest.raises(TryLater) as caught:
        await channel().deliver(delivery())
    assert caught.value.response == b"x" * 16_384


async def test_an_attempt_ends_with_its_time_out(channel, receiver):
    receiver.delay = 2
    with pytest.raises(TryLater, match="timeout"):
        await channel(timeout="100ms").deliver(delivery())


# --- check and start


async def test_check_sends_nothing_and_says_so(channel, receiver):
    health = await channel().check()
    assert health.problems == ()
    assert "http to 127.0.0.1" in health.detail
    assert "192 bits" in health.detail
    assert "no request was sent" in health.detail
    assert receiver.got == []


async def test_check_shows_the_public_keys_that_receivers_need(channel):
    health = await channel(signing_key=KEY, previous_signing_key=OLDER_KEY).check()
    assert PUBLIC_KEY in health.detail
    assert public_key_of(b"o" * 32) in health.detail


@pytest.mark.parametrize("host", ["10.0.0.1", "[::1]", "169.254.169.254", "localhost"])
async def test_check_names_a_private_address_that_is_not_allowed(channel, host):
    health = await channel(url=f"https://{host}/", allow_networks=[]).check()
    assert "url: " in health.problems[0]
    assert "allow_networks" in health.problems[0]


async def test_check_allows_a_name_that_leads_to_an_allowed_network(channel):
    allowed = ["127.0.0.0/8", "::1/128"]
    assert (await channel(url="https://localhost/", allow_networks=allowed).check()).problems == ()


async def test_a_destination_that_can_never_be_reached_does_not_start(channel):
    await channel().start()
    with pytest.raises(Misconfigured, match="allow_networks"):
        await channel(url="https://10.0.0.1/", allow_networks=[]).start()


async def test_secrets_show_nowhere(channel, receiver, caplog):
    caplog.set_level(logging.DEBUG)
    receiver.answer = {"status": 500}
    secrets = {
        "secret": SECRET,
        "previous_secret": OLDER,
        "signing_key": KEY,
        "previous_signing_key": OLDER_KEY,
    }
    webhook = channel(**secrets)
    with pytest.raises(TryLater) as caught:
        await webhook.deliver(delivery())
    shown = " ".join(
        (
            repr(webhook.settings),
            str(webhook.settings),
            webhook.settings.model_dump_json(),
            repr(vars(webhook)),
            repr(caught.value),
            (await webhook.check()).detail,
            caplog.text,
        )
    )
    for secret in secrets.values():
        assert secret.partition("_")[2] not in shown
