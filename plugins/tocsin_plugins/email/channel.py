"""A destination that takes mail."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, ClassVar, Self

from pydantic import Field, SecretStr, model_validator

from tocsin import Channel, Delivery, Duration, Health, Receipt, Tools
from tocsin_plugins.email.addresses import Mailbox, MailboxText
from tocsin_plugins.email.digest_batch import DigestBatcher
from tocsin_plugins.email.fields import PORTS, Host, MailEnvelope, SmtpServer, Tls
from tocsin_plugins.email.health import check_server
from tocsin_plugins.email.mailer import Mailer

MOST_TOGETHER = 64
"""How many events a digest holds, unless `concurrency` says otherwise."""


class Email(Channel):
    """Mails each event, in a thread for each subject, or several together in digests."""

    class Settings(Channel.Settings):
        """What a mail destination can be told."""

        host: Host = Field(description="The mail server that takes what is to be sent.")
        port: int | None = Field(
            default=None,
            ge=1,
            le=65_535,
            description="Its port; 587 by default, 465 with `implicit`, 25 with `none`.",
        )
        tls: Tls = Field(
            default="starttls",
            description="`starttls`, `implicit` or, inside `allow_networks` alone, `none`.",
        )
        username: str | None = Field(
            default=None, min_length=1, description="Whom to sign in as; nobody by default."
        )
        password: SecretStr | None = Field(default=None, description="The password to it.")
        sender: MailboxText = Field(
            description="Who writes, such as `Tocsin <tocsin@example.com>`."
        )
        to: tuple[MailboxText, ...] = Field(
            min_length=1,
            max_length=50,
            description="Who gets the mail; all of them see each other.",
        )
        cc: tuple[MailboxText, ...] = Field(
            default=(), max_length=50, description="Who gets a copy; nobody by default."
        )
        reply_to: MailboxText | None = Field(
            default=None, description="Who gets the answers; the sender by default."
        )
        template: str = Field(
            default="email", description="The receiver whose templates render subject and body."
        )
        digest: Duration | None = Field(
            default=None,
            ge=timedelta(minutes=1),
            le=timedelta(days=1),
            description="Send what comes within so long in one mail, such as `1h`; each event by "
            "itself by default. `concurrency`, then 64 by default, is how many events one holds.",
        )

        proxy: ClassVar[None] = None  # type: ignore[misc] # no HTTP proxy takes mail

        @model_validator(mode="before")
        @classmethod
        def _together(cls, given: Any) -> Any:
            if isinstance(given, Mapping) and given.get("digest") is not None:
                return {"concurrency": MOST_TOGETHER, **given}
            return given

        @model_validator(mode="after")
        def _signed_in(self) -> Self:
            if (self.username is None) != (self.password is None):
                raise ValueError("give both username and password, or neither")
            if self.tls == "none" and self.password is not None:
                raise ValueError("a password is not sent without TLS; give tls = 'starttls'")
            return self

        @model_validator(mode="after")
        def _plain_only_inside(self) -> Self:
            if self.tls == "none" and not self.allow_networks:
                raise ValueError(
                    "give tls = 'starttls' or 'implicit', or name in allow_networks the private "
                    "network that the mail server is in"
                )
            return self

    settings: Settings
    parts: ClassVar[tuple[str, ...]] = ("subject", "text", "html")

    def __init__(self, settings: Settings, tools: Tools) -> None:
        """Keep what is needed; do no I/O."""
        super().__init__(settings, tools)
        self._server = _server(settings)
        self._addressing = _addressing(settings)
        self._post = Mailer(self._server, self._addressing, tools)
        self._gathering = DigestBatcher(self._post.bring, tools.clock)

    @property
    def gathering(self) -> timedelta | None:
        """How long deliveries wait for others."""
        return self.settings.digest

    async def check(self) -> Health:
        """Return whether the server takes mail of this sender for everybody; nothing is sent."""
        return await check_server(self._server, self._addressing, self.tools)

    async def deliver(self, delivery: Delivery) -> Receipt:
        """Mail the event to everybody who has not got it by an earlier attempt."""
        if self.settings.digest is not None:
            return await self._gathering.bring(delivery)
        [result] = await self._post.bring([delivery])
        if isinstance(result, Receipt):
            return result
        raise result


def _server(settings: Email.Settings) -> SmtpServer:
    return SmtpServer(
        host=settings.host,
        port=settings.port or PORTS[settings.tls],
        tls=settings.tls,
        username=settings.username,
        password=settings.password.get_secret_value() if settings.password else "",
        timeout=settings.timeout,
    )


def _addressing(settings: Email.Settings) -> MailEnvelope:
    return MailEnvelope(
        sender=Mailbox.parse(settings.sender),
        to=tuple(map(Mailbox.parse, settings.to)),
        cc=tuple(map(Mailbox.parse, settings.cc)),
        reply_to=Mailbox.parse(settings.reply_to) if settings.reply_to else None,
    )
