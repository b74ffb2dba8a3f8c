"""Mails as they are sent: headers, text and HTML (RFC 5322, 2046, 2369, 2919, 3834)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from email.message import EmailMessage
from email.utils import format_datetime

from tocsin_plugins.email.addresses import Mailbox
from tocsin_plugins.email.fields import MailEnvelope
from tocsin_plugins.email.headers import SEVEN_BITS

LONGEST_SUBJECT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingMail:
    """What a mail says, whoever gets it."""

    message_id: str
    subject: str
    text: str
    html: str
    sent_at: datetime
    list_id: str
    parent: str | None = None
    """The Message-ID that it answers; None for the first of its thread."""
    references: tuple[str, ...] = ()
    extra: tuple[tuple[str, str], ...] = field(default=())
    """More headers, by name."""

    def write(self, to: MailEnvelope, *, utf8: bool) -> bytes:
        """Return the mail as bytes of 7 bits; with `utf8` its headers are UTF-8 (RFC 6532).

        Without, who can only be written in UTF-8 is left out of the headers.
        """
        message = EmailMessage(policy=SEVEN_BITS.clone(utf8=utf8))
        for name, value in self._headers():
            message[name] = value
        message["From"] = to.sender.as_header()
        for name, mailboxes in (
            ("To", to.to),
            ("Cc", to.cc),
            ("Reply-To", _format_mailbox(to.reply_to)),
        ):
            if shown := [it.as_header() for it in mailboxes if utf8 or not it.needs_utf8]:
                message[name] = shown
        message.set_content(self.text)
        message.add_alternative(self.html, subtype="html")
        return message.as_bytes()

    def _headers(self) -> Sequence[tuple[str, str]]:
        answered = [("In-Reply-To", self.parent)] if self.parent else []
        followed = [("References", " ".join(self.references))] if self.references else []
        return (
            ("Subject", self.subject),
            ("Date", format_datetime(self.sent_at)),
            ("Message-ID", self.message_id),
            *answered,
            *followed,
            ("Auto-Submitted", "auto-generated"),
            ("Precedence", "bulk"),
            ("X-Auto-Response-Suppress", "All"),
            ("List-Id", self.list_id),
            *self.extra,
        )


def _format_mailbox(mailbox: Mailbox | None) -> tuple[Mailbox, ...]:
    return () if mailbox is None else (mailbox,)
