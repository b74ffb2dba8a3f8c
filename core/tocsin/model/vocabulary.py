"""Closed vocabularies: severities, statuses, entity kinds."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Self

Json = Any
"""Any JSON value."""


class Vocabulary(StrEnum):
    """Base of closed vocabularies, which accept input in any letter case."""

    @classmethod
    def parse(cls, word: str) -> Self:
        """Return the member for `word` in any letter case.

        Raises ValueError, which lists the valid values, for another word.
        """
        for member in cls:
            if member.value.casefold() == word.casefold():
                return member
        raise ValueError(f"use one of: {', '.join(cls)}")


class Severity(Vocabulary):
    """The severity of an incident, from least to most severe."""

    INFORMATIONAL = "Informational"
    LOW = "Low"
    MEDIUM = "Medium"
    HIGH = "High"
    CRITICAL = "Critical"

    @property
    def rank(self) -> int:
        """The rank of the severity, from 0 for Informational to 4 for Critical."""
        return _RANKS[self]


_RANKS = {severity: rank for rank, severity in enumerate(Severity)}


class IncidentStatus(Vocabulary):
    """The status of an incident. `raw_status` contains the vendor's status."""

    NEW = "New"
    ACTIVE = "Active"
    CLOSED = "Closed"


class EntityKind(Vocabulary):
    """The kind of an entity."""

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
