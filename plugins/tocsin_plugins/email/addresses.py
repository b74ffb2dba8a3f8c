"""Mailboxes as operators write them, `Tocsin <tocsin@example.com>`, including non-ASCII ones."""

from __future__ import annotations

import re
from dataclasses import dataclass
from email.errors import NonASCIILocalPartDefect, ObsoleteHeaderDefect
from email.headerregistry import Address, Group
from email.policy import SMTPUTF8
from typing import Annotated, Self
from unicodedata import normalize

import idna
from pydantic import AfterValidator

# A dot-string of RFC 5321 section 4.1.2, with what RFC 6531 section 3.3 adds to its atoms
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~\-\u0080-\U0010ffff]+"
_LOCAL_PART = re.compile(rf"{_ATOM}(\.{_ATOM})*")
_LONGEST_LOCAL_PART = 64  # octets; RFC 5321 section 4.5.3.1
_LONGEST = 254  # a path may have 256, with its angle brackets
# permitted defects: SMTPUTF8, and names like `J. Doe`
_HARMLESS = (NonASCIILocalPartDefect, ObsoleteHeaderDefect)
_RIGHT = "use an address such as soc@example.com or 'Tocsin <tocsin@example.com>'"


@dataclass(frozen=True, slots=True)
class Mailbox:
    """A mailbox with its display name."""

    name: str
    local_part: str
    domain: str
    """In the form that every server accepts (A-labels)."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the mailbox in `text`; ValueError for none or several."""
        if not text.isprintable():
            raise ValueError(f"{_RIGHT}, without line breaks or invisible characters")
        try:
            header = SMTPUTF8.header_factory("To", normalize("NFC", text))
        except Exception:  # noqa: BLE001 - Python's parser fails in several ways for nonsense
            raise ValueError(_RIGHT) from None
        is_well = all(isinstance(defect, _HARMLESS) for defect in header.defects)
        match header.groups, header.addresses:
            case [Group(display_name=None)], [Address() as found] if is_well:
                domain = to_ascii_name(found.domain)
                return cls(found.display_name, _check_local_part(found.username, domain), domain)
        raise ValueError(_RIGHT)

    @property
    def address(self) -> str:
        """The address without the name."""
        return f"{self.local_part}@{self.domain}"

    @property
    def needs_utf8(self) -> bool:
        """Whether a server must support SMTPUTF8 (RFC 6531) to accept this address."""
        return not self.local_part.isascii()

    def as_header(self) -> Address:
        """Return the mailbox as a header value."""
        return Address(self.name, self.local_part, self.domain)


def to_ascii_name(name: str) -> str:
    """Return a host or domain name as in DNS; ValueError if it is not one."""
    try:
        return idna.encode(name, uts46=True).decode()
    except idna.IDNAError:
        raise ValueError(f"{name!r} is not a domain name; {_RIGHT}") from None


def _check_local_part(local_part: str, domain: str) -> str:
    size = len(local_part.encode())
    if not _LOCAL_PART.fullmatch(local_part) or size > _LONGEST_LOCAL_PART:
        raise ValueError(f"{local_part!r} is not valid before the @; {_RIGHT}")
    if size + 1 + len(domain) > _LONGEST:
        raise ValueError(f"an address may have at most {_LONGEST} characters")
    return local_part


def _mailbox(value: str) -> str:
    Mailbox.parse(value)
    return value


MailboxText = Annotated[str, AfterValidator(_mailbox)]
"""Text that `Mailbox` parses."""
