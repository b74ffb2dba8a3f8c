"""MITRE ATT&CK for Enterprise as data: techniques, their names and their tactics.

`NOTICE` states the version and the license.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import NamedTuple

__all__ = [
    "TACTICS",
    "VERSION",
    "Technique",
    "find_tactics",
    "find_technique_name",
    "load_techniques",
]

VERSION = "17.0"
TACTICS = (
    "reconnaissance",
    "resource-development",
    "initial-access",
    "execution",
    "persistence",
    "privilege-escalation",
    "defense-evasion",
    "credential-access",
    "discovery",
    "lateral-movement",
    "collection",
    "command-and-control",
    "exfiltration",
    "impact",
)
"""The tactics in the order of the matrix, which is roughly the order of an attack."""


class Technique(NamedTuple):
    """A technique or sub-technique."""

    name: str
    tactics: tuple[str, ...]
    """In the order of TACTICS."""


@cache
def load_techniques() -> Mapping[str, Technique]:
    """Return every technique by its ID."""
    text = (files(__name__) / "techniques.csv").read_text(encoding="utf-8")
    return MappingProxyType(
        {
            row["technique"]: Technique(row["name"], tuple(row["tactics"].split()))
            for row in csv.DictReader(text.splitlines())
        }
    )


def find_technique_name(technique: str) -> str | None:
    """Return the name of a technique, `PowerShell` for T1059.001; None if the ID is unknown."""
    known = load_techniques().get(technique.upper())
    return known and known.name


def find_tactics(technique: str) -> tuple[str, ...]:
    """Return the tactics of a technique in order; nothing if the ID is unknown.

    An unknown sub-technique has the tactics of its technique.
    """
    identifier = technique.upper()
    known = load_techniques().get(identifier) or load_techniques().get(identifier.partition(".")[0])
    return known.tactics if known else ()
