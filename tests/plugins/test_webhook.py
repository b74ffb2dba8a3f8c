"""The webhook channel against real receivers on loopback, which verify with libraries of others."""

import asyncio
import base64
import json
import logging
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from ipaddress import ip_network

import pytest
import standardwebhooks
import structlog
import svix
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tocsin import Delivery, Event, EventType, Refused, Tools, TryLater
from tocsin.net import open_client
from tocsin_plugins.webhook import Webhook, tocsin_channels
from tocsin_plugins.webhook.channel import retry_after
from tocsin_plugins.webhook.signing import decode_secret, signature_headers

# The published test vector of Standard Webhooks.
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OLDER = "whsec_" + base64.b64encode(b"o" * 32).decode()
VECTOR_SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
EVENT_ID = "01JD5N0T2Q7XGQ0V8Q2K4W9B3C"
HTTPS = "https://soar.example.com/hooks/tocsin"


class StoppedClock:
    """Stands at the moment it was made, since receivers compare with their own clock."""

    def __init__(self, moment=None):
        self.moment = moment or datetime.now(UTC)

    def now(self):
        return self.moment

    async def sleep(self, duration):
        self.moment += duration


@pytest.fixture
def settings(monkeypatch):
    def settings(**given):
        for name in ("secret", "previous_secret"):
            if name in given:
                monkeypatch.setenv(f"TEST_{name}", given[name])
                given[name] = {"env": f"TEST_{name}"}
        monkeypatch.setenv("TEST_DEFAULT", SECRET)
        defaults = {"plugin": "webhook", "url": HTTPS, "secret": {"env": "TEST_DEFAULT"}}
        return Webhook.Settings(**{**defaults, **given})

    return settings


@pytest.fixture
def wrong(settings):
    """Return what is said of settings that are wrong."""

    def wrong(**given):
        with pytest.raises(ValidationError) as caught:
            settings(**given)
        return str(caught.value)

    return wrong


def delivery(body=b'{"event_type":"incident-alert"}', attempt=1):
    event = Event(
        id=EVENT_ID,
        event_type=EventType.INCIDENT_ALERT,
        timestamp=datetime(2026, 11, 21, tzinfo=UTC),
        data={},
        subject="incident:7",
    )
    return Delivery(
        id="01JD5N0T2R", event=event, attempt=attempt, remote=None, render=lambda part: body
    )


class Receiver:
    """A server that keeps what it gets and answers as it is told."""

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
async def channel(receiver, settings):
    networks = (ip_network("127.0.0.0/8"),)
    http = open_client(allow_networks=networks)

    def channel(**given):
        tools = Tools(name="soc", http=http, clock=StoppedClock(), log=structlog.get_logger("soc"))
        given = {"url": receiver.url, "allow_networks": ["127.0.0.0/8"], **given}
        return Webhook(settings(**given), tools)

    yield channel
    await http.close()


# --- signatures


def test_the_published_vector_is_signed_as_published():
    headers = signature_headers(
        [decode_secret(SECRET)],
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        datetime.fromtimestamp(1614265330.9, UTC),
        b'{"test": 2432232314}',
    )
    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": VECTOR_SIGNATURE,
    }


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda children: (
        st.lists(children, max_size=5) | st.dictionaries(st.text(max_size=9), children, max_size=5)
    ),
    max_leaves=10,
)


@given(
    st.dictionaries(st.text(), JSON, max_size=5), st.binary(min_size=24, max_size=64), st.booleans()
)
def test_both_reference_libraries_accept_every_signature(data, key, prefixed):
    body = json.dumps(data, ensure_ascii=False).encode("utf-8", "replace")
    secret = ("whsec_" if prefixed else "") + base64.b64encode(key).decode()
    headers = signature_headers([decode_secret(secret)], EVENT_ID, datetime.now(UTC), body)
    assert standardwebhooks.Webhook(secret).verify(body, headers) == json.loads(body)
    svix.Webhook(secret).verify(body, headers)


@given(st.binary(min_size=24, max_size=64))
def test_a_secret_may_miss_its_prefix_and_its_padding(key):
    text = base64.b64encode(key).decode()
    for secret in (text, text.rstrip("="), f"whsec_{text}", f"whsec_{text}".rstrip("=")):
        assert decode_secret(secret) == key


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
    svix.Webhook(SECRET).verify(received, headers)


@pytest.mark.parametrize("secret", [SECRET, OLDER])
@pytest.mark.parametrize("library", [standardwebhooks.Webhook, svix.Webhook])
async def test_both_secrets_verify_during_a_rotation(channel, receiver, secret, library):
    await channel(secret=SECRET, previous_secret=OLDER).deliver(delivery())
    [(headers, body)] = receiver.got
    library(secret).verify(body, headers)


async def test_after_a_rotation_the_older_secret_verifies_nothing(channel, receiver):
    await channel(secret=SECRET).deliver(delivery())
    [(headers, body)] = receiver.got
    with pytest.raises(standardwebhooks.WebhookVerificationError):
        standardwebhooks.Webhook(OLDER).verify(body, headers)


async def test_attempts_share_their_id_and_have_times_of_their_own(channel, receiver):
    webhook = channel()
    await webhook.deliver(delivery())
    await webhook.tools.clock.sleep(timedelta(minutes=3))
    await webhook.deliver(delivery(attempt=2))
    (first, _), (second, body) = receiver.got
    assert first["webhook-id"] == second["webhook-id"]
    assert int(second["webhook-timestamp"]) - int(first["webhook-timestamp"]) == 180
    standardwebhooks.Webhook(SECRET).verify(body, second)


async def test_more_headers_are_sent(channel, receiver):
    await channel(headers={"X-Team": "SOC, first line"}).deliver(delivery())
    [(headers, _)] = receiver.got
    assert headers["X-Team"] == "SOC, first line"


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
async def test_any_2xx_is_a_receipt(channel, receiver, status):
    receiver.answer = {"status": status, "body": b"" if status == 204 else b"taken"}
    receipt = await channel().deliver(delivery())
    assert receipt.status == status
    assert receipt.response == receiver.answer["body"]


@pytest.mark.parametrize("status", [300, 302, 307, 400, 401, 404, 409, 429, 500, 502, 503, 599])
async def test_any_other_status_is_tried_again(channel, receiver, status):
    receiver.answer = {"status": status, "body": b"no", "headers": {"Location": receiver.url}}
    with pytest.raises(TryLater, match=f"the receiver answered {status}") as caught:
        await channel().deliver(delivery())
    assert (caught.value.status, caught.value.response, caught.value.after) == (status, b"no", None)
    assert len(receiver.got) == 1


async def test_gone_is_refused(channel, receiver):
    receiver.answer = {"status": 410, "body": b"bye"}
    with pytest.raises(Refused, match="410 Gone") as caught:
        await channel().deliver(delivery())
    assert (caught.value.status, caught.value.response) == (410, b"bye")


async def test_a_receiver_says_when_to_come_again(channel, receiver):
    receiver.answer = {"status": 429, "headers": {"Retry-After": "120"}}
    with pytest.raises(TryLater) as caught:
        await channel().deliver(delivery())
    assert caught.value.after == timedelta(minutes=2)


async def test_of_a_long_answer_16_kib_are_kept(channel, receiver):
    receiver.answer = {"status": 500, "body": b"x" * 100_000}
    with pytest.raises(TryLater) as caught:
        await channel().deliver(delivery())
    assert caught.value.response == b"x" * 16_384


async def test_an_attempt_ends_with_its_time_out(channel, receiver):
    receiver.delay = 2
    with pytest.raises(TryLater, match="time-out"):
        await channel(timeout="100ms").deliver(delivery())


# --- Retry-After

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "delay"),
    [
        ("1", timedelta(seconds=1)),
        (" 120 ", timedelta(minutes=2)),
        ("86400", timedelta(hours=24)),
        ("86401", timedelta(hours=24)),
        ("9" * 30, timedelta(hours=24)),
        ("9" * 5000, timedelta(hours=24)),
        ("0" * 5000 + "7", timedelta(seconds=7)),
        (format_datetime(NOW + timedelta(minutes=5), usegmt=True), timedelta(minutes=5)),
        ("Saturday, 21-Nov-26 12:05:00 GMT", timedelta(minutes=5)),
        ("Sat Nov 21 12:05:00 2026", timedelta(minutes=5)),
        (format_datetime(NOW + timedelta(days=30), usegmt=True), timedelta(hours=24)),
        (format_datetime(NOW - timedelta(seconds=1), usegmt=True), None),
        ("0", None),
        ("-5", None),
        ("1.5", None),
        ("+5", None),
        ("٣", None),
        ("soon", None),
        ("", None),
        ("Mon, 99 Foo 2026 99:99:99 GMT", None),
    ],
)
def test_retry_after_is_seconds_or_a_date_and_otherwise_nothing(value, delay):
    assert retry_after({"Retry-After": value}, NOW) == delay


def test_no_retry_after_is_nothing():
    assert retry_after({}, NOW) is None


@given(st.text())
def test_no_retry_after_does_harm(value):
    delay = retry_after({"Retry-After": value}, NOW)
    assert delay is None or timedelta(0) < delay <= timedelta(hours=24)


# --- settings


def test_the_plugin_offers_the_channel():
    assert tocsin_channels() is Webhook


@pytest.mark.parametrize(
    "url",
    [
        "soar.example.com/hook",
        "/hook",
        "ftp://soar.example.com/",
        "https:///hook",
        "https://soar.example.com:0/",
        "https://soar.example.com:99999/",
        "https://user:password@soar.example.com/",
        "https://@soar.example.com/",
        "https://soar.example.com/#top",
        "https://soar.example.com/#",
        "https://soar.example.com/a b",
        "https://soar.example.com\\@evil.example/",
        "https://soar.example.com/\t",
        "https://[::1",
    ],
)
def test_a_url_that_is_none_or_misleads_is_refused(wrong, url):
    assert "url" in wrong(url=url)


def test_plain_http_needs_an_allowed_network(wrong, settings):
    assert "https://" in wrong(url="http://soar.internal/hook")
    settings(url="http://soar.internal/hook", allow_networks=["10.0.0.0/8"])


@pytest.mark.parametrize(
    "secret",
    [
        "",
        "whsec_",
        "hunter2",
        "whsec_not base64 at all, not at all!",
        "whsec_" + base64.b64encode(b"s" * 23).decode(),
        "whsec_" + base64.b64encode(b"s" * 65).decode(),
        "WHSEC_" + base64.b64encode(b"s" * 32).decode(),
        "whsk_" + base64.b64encode(b"s" * 32).decode(),
        "whsec_" + base64.urlsafe_b64encode(b"\xff" * 32).decode(),
        "é" * 40,
    ],
)
@pytest.mark.parametrize("name", ["secret", "previous_secret"])
def test_a_wrong_secret_is_refused_saying_what_is_right_and_not_what_it_was(wrong, name, secret):
    text = wrong(**{name: secret})
    assert "whsec_ and the base64 of 24 to 64 random bytes" in text
    assert secret.removeprefix("whsec_") == "" or secret.removeprefix("whsec_") not in text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("X-Name", "a\r\nX-Evil: 1"),
        ("X-Name", "a\nb"),
        ("X-Name", "a\x00"),
        ("X-Name", "a\tb"),
        ("X-Name", "é"),
        ("X Name", "a"),
        ("X-Name:", "a"),
        ("", "a"),
        ("X-Näme", "a"),
        ("Content-Type", "text/plain"),
        ("content-length", "1"),
        ("Host", "other.example"),
        ("Transfer-Encoding", "chunked"),
        ("Webhook-Signature", "v1,forged"),
        ("webhook-anything", "a"),
    ],
)
def test_a_header_that_cannot_be_sent_or_is_ours_is_refused(wrong, name, value):
    assert "headers" in wrong(headers={name: value})


async def test_check_sends_nothing_and_says_so(channel, receiver):
    health = await channel().check()
    assert health.problems == ()
    assert "http to 127.0.0.1" in health.detail
    assert "192 bits" in health.detail
    assert "nothing was sent" in health.detail
    assert receiver.got == []


@pytest.mark.parametrize("host", ["10.0.0.1", "[::1]", "169.254.169.254"])
async def test_check_names_a_private_address_that_is_not_allowed(channel, host):
    health = await channel(url=f"https://{host}/", allow_networks=[]).check()
    assert "allow_networks" in health.problems[0]


async def test_secrets_show_nowhere(channel, receiver, caplog):
    caplog.set_level(logging.DEBUG)
    receiver.answer = {"status": 500}
    webhook = channel(secret=SECRET, previous_secret=OLDER)
    with pytest.raises(TryLater) as caught:
        await webhook.deliver(delivery())
    shown = " ".join(
        (
            repr(webhook.settings),
            str(webhook.settings),
            webhook.settings.model_dump_json(),
            repr(caught.value),
            str((await webhook.check()).detail),
            caplog.text,
        )
    )
    for secret in (SECRET, OLDER):
        assert secret.removeprefix("whsec_") not in shown
