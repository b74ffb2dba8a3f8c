"""Headers that Python's own folding would spoil.

It writes identifiers that are longer than a line as encoded words, which no reader takes for
identifiers, and it loses spaces between words beyond ASCII.
"""

from __future__ import annotations

from email.header import Header
from email.policy import EmailPolicy

_LINE_LENGTH = 76
_IDENTIFIERS = ("message-id", "in-reply-to", "references", "list-id")


class HeaderPolicy(EmailPolicy):
    """Writes the subject as encoded words where ASCII does not do, and identifiers whole."""

    def header_store_parse(self, name: str, value: str) -> tuple[str, str]:
        """Return the header as it is: what pretends to be encoded is not to be decoded."""
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
    """Return the value by RFC 2047; ASCII as it is, unless it pretends to be encoded already."""
    charset = "us-ascii" if value.isascii() and "=?" not in value else "utf-8"
    header = Header(str(value), charset, maxlinelen=_LINE_LENGTH, header_name=name)
    return header.encode(linesep="\r\n")


SEVEN_BITS = HeaderPolicy(linesep="\r\n", cte_type="7bit")
"""How mails are written: for servers that take no more than 7 bits."""
