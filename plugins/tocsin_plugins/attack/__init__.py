"""MITRE ATT&CK for Enterprise as data: techniques, their names and their tactics.

`NOTICE` says of which version, and on what terms.
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
"""The tactics, in the order of the matrix: roughly that of an attack."""


class Technique(NamedTuple):
    """A technique or sub-technique."""

    name: str
    tactics: tuple[str, ...]
    """In the order of TACTICS."""


@cache
def load_techniques() -> Mapping[str, Technique]:
    """Return every technique by its id."""
    text = (files(__name__) / "techniques.csv").read_text(encoding="utf-8")
    return MappingProxyType(
        {
            row["technique"]: Technique(row["name"], tuple(row["tactics"].split()))
            for row in csv.DictReader(text.splitlines())
        }
    )


def find_technique_name(technique: str) -> str | None:
    """Return a technique's name, as `PowerShell` for T1059.001; None where the id is unknown."""
    known = load_techniques().get(technique.upper())
    return known and known.name


def find_tactics(technique: str) -> tuple[str, ...]:
    """Return the tactics that a technique serves, in their order; none where the id is unknown.

    A sub-technique that is unknown serves what its technique serves.
    """
    identifier = technique.upper()
    known = load_techniques().get(identifier) or load_techniques().get(identifier.partition(".")[0])
    return known.tactics if known else ()
