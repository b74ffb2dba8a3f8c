"""Closed vocabularies: severities, statuses, entity kinds."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Self

Json = Any  # whatever JSON can hold


class Vocabulary(StrEnum):
    """A closed list of words that compare without regard to case on input."""

    @classmethod
    def parse(cls, word: str) -> Self:
        """Return the member whose value is `word` in any case; ValueError names the valid ones."""
        for member in cls:
            if member.value.casefold() == word.casefold():
                return member
        raise ValueError(f"give one of: {', '.join(cls)}")


class Severity(Vocabulary):
    """How bad an incident is, from least to worst."""

    INFORMATIONAL = "Informational"
    LOW = "Low"
    MEDIUM = "Medium"
    HIGH = "High"
    CRITICAL = "Critical"

    @property
    def rank(self) -> int:
        """0 for Informational to 4 for Critical."""
        return _RANKS[self]


_RANKS = {severity: rank for rank, severity in enumerate(Severity)}


class IncidentStatus(Vocabulary):
    """Where an incident stands; a vendor's own word is kept beside it as `raw_status`."""

    NEW = "New"
    ACTIVE = "Active"
    CLOSED = "Closed"


class EntityKind(Vocabulary):
    """What kind of thing an entity's value names."""

    IP = "ip"
    DOMAIN = "domain"
    URL = "url"
    FILE_HASH = "file_hash"
    EMAIL = "email"
    USER = "user"
    HOST = "host"
    PROCESS = "process"
    FILE = "file"
    CVE = "cve"
    MAILBOX = "mailbox"
    CLOUD_RESOURCE = "cloud_resource"
