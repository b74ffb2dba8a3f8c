"""A real mail server that answers, puts off, refuses and hangs up as it is told."""

from __future__ import annotations

import asyncio
import email
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import default
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP, AuthResult

from certificates import Authority
from tocsin import Delivery, Event, EventType
from tocsin.net import open_sockets
from tocsin.testing import ManualClock, make_settings, make_tools
from tocsin_plugins.email import Email

PASSWORD = "pass ß word"
EVENT_ID = "evt_01KAJD9V3N8Q4R5S6T7V8W9X0Y"


@dataclass
class Mail:
    """What arrived."""

    recipients: list[str]
    content: bytes
    options: list[str]

    @property
    def message(self) -> EmailMessage:
        return email.message_from_bytes(self.content, policy=default)


@dataclass
class Desk:
    """What the server is told, and what it has seen."""

    answers: dict[str, list[str]] = field(default_factory=dict)
    """What is answered in place of the usual: by step, or by `RCPT` and address; the last stays."""
    hangs_up: set[str] = field(default_factory=set)
    """At which steps it ends the connection without an answer."""
    is_silent: set[str] = field(default_factory=set)
    """At which steps it says nothing."""
    mails: list[Mail] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    logins: list[tuple[bytes, bytes]] = field(default_factory=list)
    connections: int = 0
    transports: list[asyncio.Transport] = field(default_factory=list)
    is_waiting: asyncio.Event = field(default_factory=asyncio.Event)
    """Whether it says nothing, at this moment."""
    has_ended: asyncio.Event = field(default_factory=asyncio.Event)
    """Whether a connection was."""
    hello: str = ""
    """What the client calls itself."""

    def answer(self, *steps: str) -> str | None:
        for step in steps:
            if scripted := self.answers.get(step):
                return scripted.pop(0) if len(scripted) > 1 else scripted[0]
        return None


class Server(SMTP):
    """aiosmtpd, with a script before each of its commands."""

    has_greeted = False

    def __init__(self, desk: Desk, **options: Any) -> None:
        self.desk = desk
        super().__init__(Inbox(desk), authenticator=self._check, **options)

    def _check(self, _server, _session, _envelope, _mechanism, given) -> AuthResult:
        self.desk.logins.append((given.login, given.password))
        is_right = given.password == PASSWORD.encode()
        return AuthResult(success=is_right, handled=False)

    def connection_made(self, transport) -> None:
        super().connection_made(transport)
        self.desk.connections += 1
        self.desk.transports.append(transport)
        if "connect" in self.desk.hangs_up:
            transport.abort()

    def connection_lost(self, error) -> None:
        self.desk.has_ended.set()
        super().connection_lost(error)

    async def push(self, status) -> None:
        if not self.has_greeted:
            self.has_greeted = True
            status = self.desk.answer("greeting") or status
        await super().push(status)

    async def _say(self, step: str, argument: str, usual) -> None:
        self.desk.steps.append(step)
        if step in self.desk.hangs_up:
            self.transport.abort()
            return
        if step in self.desk.is_silent:
            self.desk.is_waiting.set()
            await asyncio.sleep(60)  # ended with the connection
        scripted = self.desk.answer(f"{step} {argument}", step)
        if scripted is None or (scripted.startswith("250") and step == "RCPT"):
            await usual()
        else:
            await self.push(scripted)

    async def smtp_EHLO(self, hostname):  # noqa: N802
        self.desk.hello = hostname
        await self._say("EHLO", "", lambda: SMTP.smtp_EHLO(self, hostname))

    async def smtp_STARTTLS(self, arg):  # noqa: N802
        await self._say("STARTTLS", "", lambda: SMTP.smtp_STARTTLS(self, arg))

    async def smtp_AUTH(self, arg):  # noqa: N802
        await self._say("AUTH", "", lambda: SMTP.smtp_AUTH(self, arg))

    async def smtp_MAIL(self, arg):  # noqa: N802
        await self._say("MAIL", "", lambda: SMTP.smtp_MAIL(self, arg))

    async def smtp_RCPT(self, arg):  # noqa: N802
        address = arg.partition("<")[2].partition(">")[0]
        await self._say("RCPT", address, lambda: SMTP.smtp_RCPT(self, arg))

    async def smtp_DATA(self, arg):  # noqa: N802
        await self._say("DATA", "", lambda: SMTP.smtp_DATA(self, arg))

    async def smtp_QUIT(self, arg):  # noqa: N802
        await self._say("QUIT", "", lambda: SMTP.smtp_QUIT(self, arg))


class Inbox:
    """Takes what comes."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def handle_DATA(self, server, _session, envelope) -> str:  # noqa: N802
        self._desk.steps.append("dot")
        mail = Mail(envelope.rcpt_tos, envelope.original_content, envelope.mail_options)
        if "dot" in self._desk.hangs_up:
            self._desk.mails.append(mail)  # it has the mail, and says nothing of it
            server.transport.abort()
            return "250 never heard"
        if (scripted := self._desk.answer("dot")) and not scripted.startswith("250"):
            return scripted
        self._desk.mails.append(mail)
        return f"250 2.0.0 queued as {len(self._desk.mails)}"


class MailServer:
    """A server that listens, and how to reach it."""

    def __init__(self, desk: Desk, port: int, tls: str, ca_file: str) -> None:
        self.desk = desk
        self.settings = {"host": "127.0.0.1", "port": port, "tls": tls, "ca_file": ca_file}


@pytest.fixture(scope="session")
def authority(tmp_path_factory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def server_tls(authority):
    return authority.server("127.0.0.1")


@pytest.fixture
async def serve(authority, server_tls):
    """Start mail servers that are stopped in the end."""
    servers = []

    async def serve(tls: str = "starttls", context=None, **options: Any) -> MailServer:
        desk, loop = Desk(), asyncio.get_running_loop()
        context = context or server_tls
        if tls == "starttls":
            options = {"tls_context": context, "require_starttls": True, **options}
        else:
            options = {"auth_require_tls": False, **options}
        made = await loop.create_server(
            lambda: Server(desk, loop=loop, **{"enable_SMTPUTF8": True, **options}),
            "127.0.0.1",
            0,
            ssl=context if tls == "implicit" else None,
        )
        servers.append((made, desk))
        port = made.sockets[0].getsockname()[1]
        return MailServer(desk, port, tls, authority.file)

    yield serve
    for made, desk in servers:
        made.close()
        for transport in desk.transports:
            transport.abort()
        await made.wait_closed()
    for _ in range(5):  # what was aborted is told so in the next rounds of the loop
        await asyncio.sleep(0)


@pytest.fixture
async def server(serve) -> MailServer:
    return await serve()


class Attempts:
    """The log of attempts, as far as a test has written it."""

    def __init__(self) -> None:
        self.answers: dict[str, bytes] = {}

    async def last_answer(self, delivery_id: str) -> bytes:
        return self.answers.get(delivery_id, b"")


@pytest.fixture
def make_channel():
    """Make channels that reach what their settings allow, as the service would."""

    def make(server: MailServer, *, public_url: str = "", **given: Any) -> Email:
        usual = {
            "sender": "Tocsin <tocsin@example.com>",
            "to": ["soc@example.com"],
            "allow_networks": ["127.0.0.0/8"],
        }
        settings = make_settings(Email, "email", **{**usual, **server.settings, **given})
        sockets = open_sockets(
            allow_networks=settings.allow_networks,
            ca_file=settings.ca_file,
            client_certificate=settings.client_certificate,
        )
        tools = make_tools(name="soc", sockets=sockets, clock=ManualClock(), attempts=Attempts())
        if public_url:
            tools = type(tools)(**{**_members(tools), "public_url": public_url})
        return Email(settings, tools)

    return make


def _members(tools) -> dict[str, Any]:
    return {name: getattr(tools, name) for name in tools.__dataclass_fields__}


PARTS = {
    "subject": "[High] Many failed sign-ins",
    "text": "Many failed sign-ins\n\nGrüße",
    "html": "<!doctype html><body><!-- event --><p>Many failed sign-ins</p><!-- /event --></body>",
}


def delivery(
    number: int = 1, *, parts: dict[str, str] | None = None, subject: str = "incident:7", **members
) -> Delivery:
    event = Event(
        id=EVENT_ID if number == 1 else f"evt_{number:026}",
        event_type=EventType.INCIDENT_ALERT,
        timestamp=datetime(2026, 11, 21, 12, tzinfo=UTC),
        data={"url": "https://tocsin.example.com/incidents/7"},
        subject=subject,
        related=members.pop("about", ()),
        context=members.pop("context", {}),
    )
    texts = {**PARTS, **(parts or {})}
    usual = {"id": f"dlv_{number}", "attempt": 1, "remote_id": None}
    usual["render"] = lambda part: texts[part].encode()
    return Delivery(event=event, **{**usual, **members})
