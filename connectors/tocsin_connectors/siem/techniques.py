"""The ids of ATT&CK's techniques: https://attack.mitre.org/techniques/enterprise."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_TECHNIQUE_ID = re.compile(r"T\d{4}(?:\.\d{3})?")


def filter_techniques(values: Iterable[str]) -> Iterator[str]:
    """Yield those of some texts that are the id of a technique, and nothing else."""
    yield from (value for value in values if _TECHNIQUE_ID.fullmatch(value))


def find_techniques_in_text(text: str) -> list[str]:
    """Return the ids of techniques that a text holds."""
    return _TECHNIQUE_ID.findall(text)
