"""Pages of lists that were rendered before, for callers that request the same page again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Mapping
from types import MappingProxyType
from typing import NamedTuple

_SIZE = 32
_LONGEST = 256 * 1024
"""Maximum size of a page that is kept, in bytes."""


class DirectAnswer(NamedTuple):
    """The content of a response, and the version for its tag."""

    content: bytes
    version: str
    headers: Mapping[str, str] = MappingProxyType({})


class _KnownPage(NamedTuple):
    state: Hashable
    answer: DirectAnswer
    is_stable: bool


class KnownPages:
    """The latest pages, by request target, each valid only for the state in which it was read.

    For a page that was read twice in the same state (`is_stable`), the caller first reads only the
    state. For other pages, this does not pay off, for example while incidents change constantly.
    """

    def __init__(self) -> None:
        self._pages: OrderedDict[str, _KnownPage] = OrderedDict()

    def is_stable(self, target: str) -> bool:
        """Return whether the page was the same when it was last read."""
        known = self._pages.get(target)
        return known is not None and known.is_stable

    def recall(self, target: str, state: Hashable) -> DirectAnswer | None:
        """Return the page in this state; a page of another state is forgotten."""
        known = self._pages.get(target)
        if known is None:
            return None
        if known.state != state:
            del self._pages[target]
            return None
        self._pages.move_to_end(target)
        return known.answer

    def add(self, target: str, state: Hashable, answer: DirectAnswer) -> None:
        """Add a page as it was read, and drop the least recently used ones above the limit."""
        if len(answer.content) > _LONGEST:
            return
        before = self._pages.get(target)
        is_stable = before is not None and before.state == state
        self._pages[target] = _KnownPage(state, answer, is_stable)
        self._pages.move_to_end(target)
        if len(self._pages) > _SIZE:
            self._pages.popitem(last=False)
