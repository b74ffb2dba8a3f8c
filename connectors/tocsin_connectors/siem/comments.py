"""Comments as a SIEM shows them, among which one is looked for by its mark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any


def read_comments(records: Iterable[Mapping[str, Any]], member: str) -> Iterator[str]:
    """Yield the texts at a member of some records, each to its very end, where its mark is."""
    yield from (text for it in records if isinstance(text := it.get(member), str))
