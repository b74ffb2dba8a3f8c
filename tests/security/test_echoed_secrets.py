"""Receivers that repeat secrets: nothing of them is stored, shown or logged, whatever the form."""

from __future__ import annotations

import base64
import html
import json
import re
import textwrap
import time
from ipaddress import ip_network
from urllib.parse import quote, quote_plus

import pytest
import structlog
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr
from structlog.testing import capture_logs

import tocsin_templates
from api_callers import Admin
from tocsin import (
    Channel,
    CredentialsRefused,
    Delivery,
    EventType,
    Health,
    Receipt,
    Refused,
    Tools,
    TryLater,
)
from tocsin.delivery.destinations.samples import build_sample
from tocsin.delivery.queue.states import ClaimedDelivery
from tocsin.delivery.rendering import Renderer
from tocsin.delivery.sending.attempts import AttemptRunner, log_attempts
from tocsin.logs import RedactedLog
from tocsin.net import open_client
from tocsin.providers import Api, ApiSettings, Grant
from tocsin.redaction import HIDDEN, Redactor

SECRET = 'pa"ss\\w/rd & <ü 😀>'
ENCODINGS = {
    "plain": str,
    "JSON": json.dumps,
    "JSON as UTF-8": lambda text: json.dumps(text, ensure_ascii=False),
    "JSON in JSON": lambda text: json.dumps(json.dumps({"echo": text})),
    "JSON with escaped slashes": lambda text: json.dumps(text).replace("/", "\\/"),
    "JSON in capital hex": lambda text: "".join(
        f"\\u{text.encode('utf-16-be')[n : n + 2].hex().upper()}"
        for n in range(0, len(text.encode("utf-16-be")), 2)
    ),
    "URL": lambda text: quote(text, safe=""),
    "URL path": quote,
    "URL in lower hex": lambda text: re.sub(
        "%..", lambda code: code[0].lower(), quote(text, safe="")
    ),
    "URL twice": lambda text: quote(quote(text, safe=""), safe=""),
    "form": quote_plus,
    "URL in JSON": lambda text: json.dumps(quote(text)),
    "HTML": html.escape,
}


@pytest.mark.parametrize("encode", ENCODINGS.values(), ids=ENCODINGS)
def test_a_secret_is_found_in_each_encoding(encode):
    text = f"before {encode(SECRET)} after"
    cleaned = Redactor([SECRET]).clean(text)
    assert cleaned.replace('"', "").replace("\\", "").replace("{echo: ", "").rstrip("}") in {
        f"before {HIDDEN} after",
        f"before {HIDDEN}}} after",
    }


SPLIT_SECRET = "tok_9fK2/x+Lm-Qw7=ZZ_8s3h$d!yhTR"
SPLITS = {
    "lines": lambda text: "\n".join(textwrap.wrap(text, 10)),
    "indented lines": lambda text: "\r\n    ".join(textwrap.wrap(text, 7)),
    "lines in JSON": lambda text: json.dumps("\r\n".join(textwrap.wrap(text, 5)))[1:-1],
    "one character a line": "\n".join,
    "quoted mail": lambda text: "\n> ".join(textwrap.wrap(text, 9)),
    "folded header": lambda text: "\r\n\t".join(textwrap.wrap(text, 12)),
    "quoted-printable": lambda text: "=\n".join(textwrap.wrap(text.replace("=", "=3D"), 11)),
    "all quoted-printable": lambda text: "".join(f"={byte:02X}" for byte in text.encode()),
    "zero-width spaces": "\u200b".join,
    "soft hyphens": "\u00ad".join,
    "zero bytes": "\x00".join,
    "bytes of Python": lambda text: "".join(f"\\x{byte:02x}" for byte in text.encode()),
    "code points of Python": lambda text: "".join(f"\\U{ord(each):08x}" for each in text),
    "code points of JavaScript": lambda text: "".join(f"\\u{{{ord(each):x}}}" for each in text),
    "old escapes of JavaScript": lambda text: "".join(f"%u{ord(each):04X}" for each in text),
    "names of HTML": lambda text: (
        text.replace("$", "&dollar;").replace("/", "&sol;").replace("!", "&excl;")
    ),
    "every second way": lambda text: "".join(
        (each, f"%{ord(each):02x}", f"&#{ord(each)};", f"\\u{ord(each):04x}\n")[place % 4]
        for place, each in enumerate(text)
    ).rstrip("\n"),
}


@pytest.mark.parametrize("split", SPLITS.values(), ids=SPLITS)
def test_a_secret_is_found_where_it_is_split_or_escaped(split):
    text = f"before: {split(SPLIT_SECRET)} after"
    assert Redactor([SPLIT_SECRET]).clean(text) == f"before: {HIDDEN} after"


@pytest.mark.parametrize("width", [4, 20, 64, 76])
@pytest.mark.parametrize("before", ["", "user:", "x" * 50])
def test_a_secret_is_found_in_base64_of_several_lines(before, width):
    whole = base64.b64encode(f"{before}{SPLIT_SECRET}{'!' * 90}".encode()).decode()
    for end in ("\n", "\r\n ", "\\n"):
        cleaned = Redactor([SPLIT_SECRET]).clean(end.join(textwrap.wrap(whole, width)))
        assert HIDDEN in cleaned
        first = cleaned.replace(end, "").partition(HIDDEN)[0]
        kept = base64.b64decode(first[: len(first) // 4 * 4])
        assert SPLIT_SECRET[:3].encode() not in kept


def test_a_secret_of_several_lines_is_found():
    key = "-----BEGIN KEY-----\nMIIB+/=\nAB==\n\n\n-----END KEY-----\n"
    for text in (key, json.dumps(key), key.replace("\n", "\r\n"), quote(key)):
        assert "MIIB" not in Redactor([key]).clean(text)
        assert "AB=" not in Redactor([key]).clean(text)


@given(st.text(min_size=4), st.sampled_from(list(ENCODINGS.values())), st.text(), st.text())
def test_any_secret_is_found_in_any_encoding(secret, encode, before, after):
    try:
        encoded = encode(secret)
        encoded.encode()
    except UnicodeEncodeError:  # a surrogate, which no answer holds
        return
    if encode is quote_plus or encode is str or encode is html.escape:
        inner = encoded
    else:
        inner = encoded.strip('"')
    assert inner not in Redactor([secret]).clean(before + encoded + after) or inner in HIDDEN


def test_the_cut_beginning_of_a_secret_is_removed():
    secret = "0123456789abcdefghij"
    assert Redactor([secret]).clean(f"400: {secret[:15]}…") == f"400: {HIDDEN}…"
    assert Redactor([secret]).clean_bytes(b"\xff " + secret[:-1].encode()) == b"\xff [secret]"


@pytest.mark.parametrize("before", ["", "a", "ab", "user:", "Größe:"])
@pytest.mark.parametrize(
    "encode", [base64.b64encode, base64.urlsafe_b64encode, lambda data: data.hex().encode()]
)
def test_no_half_of_a_secret_is_left_in_base64_or_hex(encode, before):
    secret = "correct-horse?battery>staple"
    text = encode((before + secret + "@").encode()).decode()
    cleaned = Redactor([secret]).clean(f"Basic {text} x")
    kept = cleaned.removeprefix("Basic ").removesuffix(" x").replace(HIDDEN, "")
    assert HIDDEN in cleaned
    assert len(kept) <= len(encode(f"{before}@".encode()).decode()) + 4


HOSTILE_ANSWERS = {
    "backslashes": "\\" * 16_384,
    "escapes": "\\u" * 8_000,
    "percent signs": "%" + "25" * 8_000,
    "entities": "&#" + "0" * 16_000,
    "the secret's beginning": "\\u\\u" * 4_000,
    "line breaks": "\n" * 16_384,
    "indentation": "\n\t >" * 4_000,
    "quoted-printable": "=\r\n" * 5_000,
    "escaped line breaks": "\\n" * 8_000,
    "split beginnings": "a\n" * 8_000,
    "zero bytes": "a\x00" * 8_000,
    "names": "&sol" * 4_000,
}


@pytest.mark.parametrize("answer", HOSTILE_ANSWERS.values(), ids=HOSTILE_ANSWERS)
def test_an_answer_does_not_stop_a_node_while_secrets_are_looked_for(answer):
    secrets = ["top-secret-value", "\\u" * 8, "\\" * 40, '\\"' * 8, "%" * 16, "&;" * 8]
    secrets += ["a" * 64, "\n" * 16, "a\n" * 30, "=\n" * 20, " >" * 20, "n\\n" * 20]
    began = time.thread_time()
    Redactor(secrets).clean(answer)
    assert time.thread_time() - began < 1  # the first of these took 5.6 s, the second for ever


@pytest.mark.parametrize("name", ["warning", "exception"])
def test_the_log_of_a_plugin_has_no_secret(name):
    log = RedactedLog(structlog.get_logger(), Redactor([SECRET, TOKEN]))
    with capture_logs() as logs:
        try:
            int(SECRET)
        except ValueError as error:
            write = getattr(log.bind(url=quote(TOKEN)), name)
            write(f"refused {TOKEN}", reason=error, answer=[{"of": SECRET}], status=400)
    expect_clean(str(logs))
    [line] = logs
    assert (line["event"], line["status"]) == (f"refused {HIDDEN}", 400)


async def test_an_error_of_a_provider_has_no_secret(clock):
    async with Repeater(400) as server:
        settings = TokenSettings.model_construct(
            url=str(server.make_url("/")).rstrip("/"), token=SecretStr(TOKEN)
        )

        async def sign_in():
            return Grant(f"Basic {base64.b64encode(f'user:{TOKEN}'.encode()).decode()}")

        client = open_client(allow_networks=[ip_network("127.0.0.0/8")])
        tools = Tools(name="edge", http=client, clock=clock, log=structlog.get_logger())
        try:
            with pytest.raises(Refused) as caught:
                await Api(tools, settings, sign_in=sign_in).get("/alerts", key=TOKEN)
        finally:
            await client.close()
    shown = f"{caught.value} {caught.value.response.decode()}"
    expect_clean(shown)
    assert HIDDEN in shown
    assert base64.b64encode(TOKEN.encode()).decode()[:12] not in shown


class TokenSettings(ApiSettings):
    """Settings of a server that takes a token."""

    token: SecretStr


def test_short_values_and_other_text_stay():
    assert Redactor(["abc", ""]).clean("abc") == "abc"
    assert Redactor(["correct-horse"]).clean("correct horse") == "correct horse"


class Echo(Channel):
    """A channel whose receiver repeats the secrets in every place that is kept."""

    class Settings(Channel.Settings):
        token: SecretStr
        headers: dict[str, SecretStr]

    error: type[Exception] | None = None

    async def check(self) -> Health:
        return Health(detail="fine")

    async def deliver(self, _delivery: Delivery) -> Receipt:
        echo = json.dumps({"text": SECRET}) + quote(TOKEN)
        if self.error in (TryLater, Refused):
            raise self.error(f"returned 400: {echo}", status=400, response=echo.encode())
        if self.error is not None:
            raise self.error(echo)
        link = f"https://receiver.example/{quote(TOKEN)}"
        return Receipt(status=200, response=echo.encode(), remote_id=TOKEN, remote_url=link)


TOKEN = "ghp/0123456789abcdef"


@pytest.mark.parametrize("error", [None, TryLater, Refused, CredentialsRefused, ValueError])
async def test_nothing_of_an_attempt_holds_a_secret(clock, monkeypatch, error):
    monkeypatch.setattr(Echo, "error", error)
    given = {"token": SecretStr(TOKEN), "headers": {"X-Key": SecretStr(SECRET)}}
    settings = Echo.Settings.model_construct(**{**defaults(), **given})
    tools = Tools(name="soc", http=None, clock=clock, log=structlog.get_logger())
    event = build_sample(EventType.INCIDENT_ALERT, "https://tocsin.example", clock.now())
    claimed = ClaimedDelivery(
        id="dlv_1",
        event=event,
        attempt=1,
        step=1,
        remote_id=None,
        lease="",
        leased_until=clock.now(),
    )
    templates = Renderer(tocsin_templates.tocsin_template_paths())
    with capture_logs() as logs:
        attempt = await AttemptRunner(Echo(settings, tools), templates).make(claimed)
        log_attempts("soc", [attempt], [])
    kept = (attempt.response.decode(), attempt.reason, attempt.remote_id, attempt.remote_url)
    expect_clean(f"{kept} {logs}")
    assert HIDDEN in str(kept)


def defaults() -> dict[str, object]:
    fields = Channel.Settings.model_fields.items()
    return {name: field.get_default() for name, field in fields} | {"plugin": "echo"}


def expect_clean(text: str) -> None:
    for secret in (SECRET, TOKEN):
        for name, encode in ENCODINGS.items():
            assert encode(secret).strip('"') not in text, name
    assert "0123456789" not in text


class Repeater(TestServer):
    """A server that answers with every header and the body of the request.

    `in_headers`, the answer has secrets in its status line and header fields too, and its body
    arrives byte by byte.
    """

    def __init__(self, status: int, *, in_headers: bool = False) -> None:
        self._status = status
        self._in_headers = in_headers
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._repeat)
        super().__init__(app)

    async def _repeat(self, request: web.Request) -> web.Response:
        echo = {"url": str(request.url), "headers": dict(request.headers)}
        echo["data"] = await request.text()
        if not self._in_headers:
            return web.json_response(echo, status=self._status)
        fields = dict.fromkeys(("Retry-After", "Server", "Content-Type", "X-Echo"), TOKEN)
        fields |= {
            "Location": f"https://evil.example/{quote(TOKEN)}?{request.query_string}",
            "WWW-Authenticate": f'Bearer error_description="{TOKEN}"',
        }
        response = web.StreamResponse(status=self._status, reason=TOKEN, headers=fields)
        response.enable_chunked_encoding()
        await response.prepare(request)
        for byte in json.dumps(echo).encode():
            await response.write(bytes([byte]))
        return response


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("status", "in_headers"),
    [*((status, False) for status in (200, 400, 401, 503)), (302, True), (400, True), (429, True)],
)
async def test_a_receiver_that_repeats_the_request_shows_no_secret(api, status, in_headers):
    admin = Admin(api, await api.admin())
    settings = {
        "headers": {"X-Key": SECRET[:13], "Authorization": TOKEN},
        "body_secrets": {"routing_key": SECRET},
        "secret": "whsec_" + base64.b64encode(b"s" * 30).decode(),
        "allow_networks": ["127.0.0.0/8"],
    }
    async with Repeater(status, in_headers=in_headers) as server:
        url = "/hook/0123456789abcdef?token=0123456789xyz"
        settings["secret_url"] = str(server.make_url(url))
        body = {"name": "soar", "plugin": "webhook", "settings": settings}
        await admin.ask("POST", "/api/admin/destinations", 201, json=body)
        result = await admin.ask("POST", "/api/admin/destinations/soar/test")
    assert result["status"] == status
    assert HIDDEN in result["response"]
    expect_clean(json.dumps(result) + result["response"])
