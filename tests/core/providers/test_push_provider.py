"""Who may push: a token that is shown or a signature that is fresh, and nothing else."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Iterator
from datetime import datetime, timedelta
from threading import get_ident

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from standardwebhooks import Webhook

from signatures import svix_webhook
from tocsin import CredentialsRefused, Health, PushProvider, PushRequest, Received, Refused, Tools
from tocsin.clock import SystemClock
from tocsin.fields import SettingsOrigin

TOKEN = "a-token-of-sixteen"
SECRET = "whsec_" + b64encode(b"k" * 24).decode()
BODY = b'{"n": 1}'
FRESH = timedelta(minutes=5)


class Counting(PushProvider):
    """Counts what it unpacks."""

    unpacked = 0
    thread = 0

    async def check(self) -> Health:
        return Health(detail="")

    def unpack(self, body: bytes, received_at: datetime) -> Iterator[Received]:
        self.unpacked += 1
        self.thread = get_ident()
        if not body:
            raise Refused("empty")
        yield Received(records=1)


def made(clock, **settings: str) -> Counting:
    context = SettingsOrigin().context()
    parsed = Counting.Settings.model_validate({"plugin": "counting"} | settings, context=context)
    tools = Tools(name="it", http=None, clock=clock, log=structlog.get_logger())
    return Counting(parsed, tools)


@pytest.fixture
def provider(clock) -> Counting:
    return made(clock, token=TOKEN, secret=SECRET)


async def admitted(provider: Counting, headers: dict[str, str], body: bytes = BODY) -> bool:
    """Return whether a request is let in; one that is not is not looked into either."""
    before = provider.unpacked
    judged = provider.is_authentic(headers)
    try:
        async for _ in provider.receive(PushRequest(headers=headers, body=body)):
            pass
    except CredentialsRefused:
        assert provider.unpacked == before
        assert judged is not True
        return False
    assert judged is not False
    return True


def basic(user: str, password: str) -> str:
    return "Basic " + b64encode(f"{user}:{password}".encode()).decode()


def signed(clock, body: bytes = BODY, *, by=Webhook, identifier: str = "msg_1") -> dict[str, str]:
    moment = clock.now()
    return {
        "webhook-id": identifier,
        "webhook-timestamp": str(int(moment.timestamp())),
        "webhook-signature": by(SECRET).sign(identifier, moment, body.decode()),
    }


@pytest.mark.parametrize(
    "authorization",
    [f"Bearer {TOKEN}", f"bearer  {TOKEN} ", basic("", TOKEN), basic("anyone", TOKEN)],
)
async def test_whoever_shows_the_token_may_push(provider, authorization):
    assert await admitted(provider, {"Authorization": authorization})


@pytest.mark.parametrize(
    "authorization",
    [
        "",
        "Bearer",
        "Bearer ",
        TOKEN,
        f"Token {TOKEN}",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        f"Bearer {TOKEN.upper()}",
        "Bearer \udcff",
        basic(TOKEN, ""),
        basic(TOKEN, "wrong"),
        "Basic \udcff",
        "Basic é",
        "Basic ====",
        f"Basic {TOKEN}",
    ],
)
async def test_whoever_shows_anything_else_may_not(provider, authorization):
    assert not await admitted(provider, {"Authorization": authorization})


async def test_a_token_is_none_where_only_a_secret_is_set(clock):
    provider = made(clock, secret=SECRET)
    assert not await admitted(provider, {"Authorization": f"Bearer {TOKEN}"})
    assert not await admitted(provider, {"Authorization": "Bearer "})
    assert not await admitted(made(clock, token=TOKEN), signed(clock))


@pytest.mark.parametrize("library", [Webhook, svix_webhook])
async def test_what_libraries_of_the_standard_sign_is_let_in(provider, clock, library):
    assert await admitted(provider, signed(clock, by=library))


async def test_one_good_signature_among_others_will_do(provider, clock):
    headers = signed(clock)
    others = f"v1a,AAAA v1,{b64encode(b'x' * 32).decode()}"
    headers["webhook-signature"] = f"{others} {headers['webhook-signature']}"
    assert await admitted(provider, headers)


@pytest.mark.parametrize(
    "changed",
    [
        {"webhook-id": "msg_2"},
        {"webhook-id": ""},
        {"webhook-timestamp": "1"},
        {"webhook-timestamp": ""},
        {"webhook-timestamp": "9" * 30},
        {"webhook-timestamp": "-1"},
        {"webhook-timestamp": "²"},
        {"webhook-signature": ""},
        {"webhook-signature": "v1,"},
        {"webhook-signature": "v1,\udcff"},
    ],
)
async def test_what_is_signed_otherwise_is_not(provider, clock, changed):
    assert not await admitted(provider, signed(clock) | changed)


async def test_a_signature_is_good_for_one_body(provider, clock):
    assert not await admitted(provider, signed(clock), b'{"n": 2}')


@pytest.mark.parametrize("direction", [1, -1])
async def test_a_signature_is_good_for_five_minutes_either_way(provider, clock, direction):
    headers = signed(clock)
    clock.advance(seconds=direction * FRESH.total_seconds())
    assert await admitted(provider, headers)
    assert await admitted(provider, headers)
    clock.advance(seconds=direction)
    assert not await admitted(provider, headers)


async def test_a_body_is_unpacked_beside_what_else_goes_on(provider):
    await admitted(provider, {"Authorization": f"Bearer {TOKEN}"})
    assert provider.thread != get_ident()
    with pytest.raises(Refused, match="empty"):
        await admitted(provider, {"Authorization": f"Bearer {TOKEN}"}, b"")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "set a token or a secret"),
        ({"token": "short"}, "16 characters or more"),
        ({"secret": "QUJD" * 10}, "use whsec_ and 24 to 64 bytes"),
        ({"secret": "whsec_QUJD"}, "use whsec_ and 24 to 64 bytes"),
        ({"secret": "whsec_é"}, "use whsec_ and 24 to 64 bytes"),
    ],
)
def test_weak_credentials_are_refused(clock, settings, words):
    with pytest.raises(ValidationError, match=words):
        made(clock, **settings)


async def test_nothing_is_read(provider, clock):
    assert provider.streams() == ()
    assert [page async for page in provider.read("changed", None, clock.now())] == []


fields = st.text(
    st.characters(codec="utf-8") | st.characters(min_codepoint=0xDC80, max_codepoint=0xDCFF)
)
names = st.sampled_from(["Authorization", "webhook-id", "webhook-timestamp", "webhook-signature"])


@given(st.dictionaries(names, fields | fields.map("Bearer {}".format) | fields.map("v1,{}".format)))
def test_no_header_but_the_right_one_lets_anybody_in(headers):
    provider = made(SystemClock(), token=TOKEN, secret=SECRET)
    assert not asyncio.run(admitted(provider, headers))
