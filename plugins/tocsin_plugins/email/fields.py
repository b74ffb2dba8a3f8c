"""Field types of the email settings, and the values derived from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from ipaddress import ip_address
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import AfterValidator

from tocsin_plugins.email.addresses import Mailbox, to_ascii_name

Tls = Literal["starttls", "implicit", "none"]
PORTS = MappingProxyType({"starttls": 587, "implicit": 465, "none": 25})
"""Default ports: RFC 6409, RFC 8314, RFC 5321."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmtpServer:
    """Address and credentials of the mail server."""

    host: str
    port: int
    tls: Tls
    username: str | None
    password: str = field(repr=False)
    timeout: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class MailEnvelope:
    """Sender and recipients."""

    sender: Mailbox
    to: tuple[Mailbox, ...]
    cc: tuple[Mailbox, ...] = ()
    reply_to: Mailbox | None = None

    @property
    def recipients(self) -> tuple[Mailbox, ...]:
        """All recipients, without duplicates."""
        return tuple({mailbox.address: mailbox for mailbox in (*self.to, *self.cc)}.values())

    def groups(self, left: Sequence[Mailbox] | None = None) -> list[tuple[bool, list[str]]]:
        """Return the addresses by whether they need SMTPUTF8 (RFC 6531).

        The others get a mail that every relay accepts.
        """
        wanted = self.recipients if left is None else left
        grouped: dict[bool, list[str]] = {}
        for mailbox in wanted:
            needed = mailbox.needs_utf8 or self.sender.needs_utf8
            grouped.setdefault(needed, []).append(mailbox.address)
        return sorted(grouped.items())


def _host(value: str) -> str:
    try:
        return str(ip_address(value))
    except ValueError:
        pass
    if value.isascii() and value.replace(".", "").replace("-", "").replace("_", "").isalnum():
        return value.lower()
    try:
        return to_ascii_name(value)
    except ValueError:
        raise ValueError("use the name of the mail server, such as mail.example.com") from None


Host = Annotated[str, AfterValidator(_host)]
"""IP address or host name of a server; names in the form that DNS uses."""
