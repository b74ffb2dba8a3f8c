"""Mails as sent: headers, text and HTML (RFC 5322, 2046, 2047, 2369, 2919, 3834)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from email.header import Header
from email.message import EmailMessage
from email.policy import EmailPolicy
from email.utils import format_datetime
from unicodedata import category

from tocsin_plugins.email.addresses import Mailbox
from tocsin_plugins.email.fields import MailEnvelope

LONGEST_SUBJECT = 200
_LINE_LENGTH = 76
_IDENTIFIERS = ("message-id", "in-reply-to", "references", "list-id")
_REORDERING = re.compile("[\u202a-\u202e\u2066-\u2069]")  # the explicit controls of Unicode's UAX 9
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_LINE_ENDS = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_SEPARATE = ("Cc", "Cs", "Zl", "Zp", "Zs")


def to_one_line(text: str, longest: int) -> str:
    """Return the text as one line of limited length, without hidden or reordering characters.

    A cut text ends with `…`. Nothing in it can start another header.
    """
    begin = _REORDERING.sub("", text[: 4 * longest])  # bounds the work
    spaced = "".join(" " if category(sign) in _SEPARATE else sign for sign in begin)
    line = " ".join(spaced.split())
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"


def clean_lines(text: str) -> str:
    """Return the text without hidden or reordering characters; lines end with a line feed."""
    return _CONTROLS.sub("", _REORDERING.sub("", _LINE_ENDS.sub("\n", text)))


class HeaderPolicy(EmailPolicy):
    """Encodes subjects only if necessary, and never splits identifiers.

    Python's own folding writes identifiers that are longer than a line as encoded words, which no
    reader recognizes, and loses spaces between non-ASCII words.
    """

    def header_store_parse(self, name: str, value: str) -> tuple[str, str]:
        """Return the header unchanged: encoded-looking text is not decoded."""
        if name.lower() in ("subject", *_IDENTIFIERS):
            return name, value
        return super().header_store_parse(name, value)

    def fold_binary(self, name: str, value: str) -> bytes:
        """Return the lines of a header."""
        if name.lower() == "subject":
            return f"{name}: {_encode_words(name, value)}{self.linesep}".encode()
        if name.lower() in _IDENTIFIERS:
            return f"{name}: {f'{self.linesep} '.join(value.split())}{self.linesep}".encode()
        return super().fold_binary(name, value)


def _encode_words(name: str, value: str) -> str:
    """Return the value, encoded as in RFC 2047 unless it is ASCII and does not look encoded."""
    charset = "us-ascii" if value.isascii() and "=?" not in value else "utf-8"
    header = Header(str(value), charset, maxlinelen=_LINE_LENGTH, header_name=name)
    return header.encode(linesep="\r\n")


SEVEN_BITS = HeaderPolicy(linesep="\r\n", cte_type="7bit")
"""Policy for mails in 7 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingMail:
    """Content of a mail, independent of recipients."""

    message_id: str
    subject: str
    text: str
    html: str
    sent_at: datetime
    list_id: str
    parent: str | None = None
    """Message-ID of the mail that this one replies to; None for the first mail of a thread."""
    references: tuple[str, ...] = ()
    extra: tuple[tuple[str, str], ...] = field(default=())
    """Additional headers, by name."""

    def write(self, to: MailEnvelope, *, utf8: bool) -> bytes:
        """Return the mail in 7 bits; with `utf8`, its headers are UTF-8 (RFC 6532).

        Without it, recipients that require UTF-8 are left out of the headers.
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
            if shown := [
                mailbox.as_header() for mailbox in mailboxes if utf8 or not mailbox.needs_utf8
            ]:
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
