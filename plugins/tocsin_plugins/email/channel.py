"""Email channel."""

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
"""Events per digest, unless `concurrency` is set."""


class EmailSettings(Channel.Settings):
    """Settings of an email destination."""

    host: Host = Field(description="Host name of the mail server that accepts outgoing emails.")
    port: int | None = Field(
        default=None,
        ge=1,
        le=65_535,
        description="Port of the mail server. By default, this is 587, but 465 with "
        '`tls = "implicit"` and 25 with `tls = "none"`.',
    )
    tls: Tls = Field(
        default="starttls",
        description="TLS mode: `starttls`, `implicit` or `none`. `none` is valid only for servers "
        "inside `allow_networks`.",
    )
    username: str | None = Field(
        default=None,
        min_length=1,
        description="Username for the mail server. By default, Tocsin does not authenticate.",
    )
    password: SecretStr | None = Field(default=None, description="The user's password.")
    sender: MailboxText = Field(description="Sender, such as `Tocsin <tocsin@example.com>`.")
    to: tuple[MailboxText, ...] = Field(
        min_length=1,
        max_length=50,
        description="Recipients, who can see each other's addresses.",
    )
    cc: tuple[MailboxText, ...] = Field(
        default=(), max_length=50, description="Recipients of copies (Cc). By default, none."
    )
    reply_to: MailboxText | None = Field(
        default=None, description="Address for replies. By default, the address of the sender."
    )
    template: str = Field(
        default="email", description="Receiver whose templates render the subject and the body."
    )
    digest: Duration | None = Field(
        default=None,
        ge=timedelta(minutes=1),
        le=timedelta(days=1),
        description="Length of a period, such as `1h`. At the end of each period, Tocsin sends the "
        "period's events together in one email. By default, Tocsin sends each event in a separate "
        "email. With `digest`, `concurrency` defaults to 64 and limits the number of events in an "
        "email.",
    )

    proxy: ClassVar[None] = None  # type: ignore[misc] # HTTP proxies do not relay mail

    @model_validator(mode="before")
    @classmethod
    def _together(cls, given: Any) -> Any:
        if isinstance(given, Mapping) and given.get("digest") is not None:
            return {"concurrency": MOST_TOGETHER, **given}
        return given

    @model_validator(mode="after")
    def _signed_in(self) -> Self:
        if (self.username is None) != (self.password is None):
            raise ValueError("set both username and password, or neither")
        if self.tls == "none" and self.password is not None:
            raise ValueError("Tocsin does not send passwords without TLS; set tls = 'starttls'")
        return self

    @model_validator(mode="after")
    def _plain_only_inside(self) -> Self:
        if self.tls == "none" and not self.allow_networks:
            raise ValueError(
                "set tls = 'starttls' or 'implicit', or add the private network of the mail "
                "server to allow_networks"
            )
        return self


class Email(Channel[EmailSettings]):
    """Emails each event, in one thread per subject, or several events together as a digest."""

    parts: ClassVar[tuple[str, ...]] = ("subject", "text", "html")

    def __init__(self, settings: EmailSettings, tools: Tools) -> None:
        """Store the settings and tools; perform no I/O."""
        super().__init__(settings, tools)
        self._server = _server(settings)
        self._addressing = _addressing(settings)
        self._post = Mailer(self._server, self._addressing, tools)
        self._gathering = DigestBatcher(self._post.bring, tools.clock)

    @property
    def gathering(self) -> timedelta | None:
        """Length of a digest window."""
        return self.settings.digest

    async def check(self) -> Health:
        """Report whether the server accepts sender and recipients, without sending an email."""
        return await check_server(self._server, self._addressing, self.tools)

    async def deliver(self, delivery: Delivery) -> Receipt:
        """Email the event to all recipients who have not received it in an earlier attempt."""
        if self.settings.digest is not None:
            return await self._gathering.bring(delivery)
        [result] = await self._post.bring([delivery])
        if isinstance(result, Receipt):
            return result
        raise result


def _server(settings: EmailSettings) -> SmtpServer:
    return SmtpServer(
        host=settings.host,
        port=settings.port or PORTS[settings.tls],
        tls=settings.tls,
        username=settings.username,
        password=settings.password.get_secret_value() if settings.password else "",
        timeout=settings.timeout,
    )


def _addressing(settings: EmailSettings) -> MailEnvelope:
    return MailEnvelope(
        sender=Mailbox.parse(settings.sender),
        to=tuple(map(Mailbox.parse, settings.to)),
        cc=tuple(map(Mailbox.parse, settings.cc)),
        reply_to=Mailbox.parse(settings.reply_to) if settings.reply_to else None,
    )
