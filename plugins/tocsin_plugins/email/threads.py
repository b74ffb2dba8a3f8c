"""Threads of mails: identifiers (RFC 5322 section 3.6.4) and subject."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Self

from tocsin import Delivery

_ENCODED = re.compile(r"(?:root=(?P<root><[^<>\s]+>) )?(?P<first><[^<>\s]+>) (?P<subject>.+)")
_ATOMS = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_LONGEST = 100
_DIGITS = 32


@dataclass(frozen=True, slots=True)
class MailThread:
    """Data for the mails that follow the first one of a thread."""

    first: str
    """Message-ID of the first mail."""
    subject: str
    root: str | None = None
    """Identifier of the thread itself, which all of its mails refer to."""

    def encode(self) -> str:
        """Return the receipt's text, which has the IDs by which mail readers find the thread."""
        root = f"root={self.root} " if self.root else ""
        return f"{root}{self.first} {self.subject}"

    @classmethod
    def of(cls, remote: str | None) -> Self | None:
        """Return the thread from a text of `encode`; None for any other text."""
        found = _ENCODED.fullmatch(remote or "")
        return cls(found["first"], found["subject"], found["root"]) if found else None

    @classmethod
    def before(cls, delivery: Delivery) -> Self | None:
        """Return the thread that the event continues; None if it starts one.

        It is that of its subject, or of the first incident that it is about.
        """
        remotes = [delivery.remote_id] + [
            delivery.related.get(subject)
            for subject in delivery.event.related
            if subject.startswith("incident:")
        ]
        return next((found for remote in remotes if (found := cls.of(remote))), None)


def build_message_id(name: str, domain: str) -> str:
    """Return the stable Message-ID of a name: `<incident.7f3a@example.com>`."""
    dotted = name.replace(":", ".")
    if not _ATOMS.fullmatch(dotted) or len(dotted) > _LONGEST:
        dotted = sha256(name.encode(errors="replace")).hexdigest()[:_DIGITS]
    return f"<{dotted}@{domain}>"


def build_shared_message_id(names: list[str], domain: str) -> str:
    """Return the stable Message-ID of several names, in any order."""
    digest = sha256("\n".join(sorted(names)).encode(errors="replace")).hexdigest()
    return build_message_id(f"digest.{digest[:_DIGITS]}", domain)
