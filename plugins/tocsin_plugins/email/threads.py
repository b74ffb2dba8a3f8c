"""Which mails stand together: identifiers (RFC 5322 section 3.6.4) and the subject of a thread."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Self

from tocsin import Delivery

_TOLD = re.compile(r"(<[^<>\s]+>) (.+)")
_ATOMS = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_LONGEST = 100
_DIGITS = 32


@dataclass(frozen=True, slots=True)
class MailThread:
    """What the mails that follow the first one need to know of it."""

    first: str
    """Its Message-ID."""
    subject: str

    def told(self) -> str:
        """Return what a receipt keeps of it, for mail readers to find it by."""
        return f"{self.first} {self.subject}"

    @classmethod
    def of(cls, remote: str | None) -> Self | None:
        """Return the thread of which `told` tells; None for anything else."""
        found = _TOLD.fullmatch(remote or "")
        return cls(found[1], found[2]) if found else None

    @classmethod
    def before(cls, delivery: Delivery) -> Self | None:
        """Return the thread that the event belongs in; None where it begins one.

        That is its subject's, or that of the first incident that it is about.
        """
        remotes = [delivery.remote_id] + [
            delivery.related.get(subject)
            for subject in delivery.event.related
            if subject.startswith("incident:")
        ]
        return next((found for remote in remotes if (found := cls.of(remote))), None)


def build_message_id(name: str, domain: str) -> str:
    """Return a Message-ID that is always the same for this name: `<incident.7f3a@example.com>`."""
    dotted = name.replace(":", ".")
    if not _ATOMS.fullmatch(dotted) or len(dotted) > _LONGEST:
        dotted = sha256(name.encode(errors="replace")).hexdigest()[:_DIGITS]
    return f"<{dotted}@{domain}>"


def build_shared_message_id(names: list[str], domain: str) -> str:
    """Return a Message-ID that is always the same for these names, in whichever order."""
    digest = sha256("\n".join(sorted(names)).encode(errors="replace")).hexdigest()
    return build_message_id(f"digest.{digest[:_DIGITS]}", domain)
