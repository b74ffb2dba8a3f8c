"""Identifiers that sort by the order in which they were made."""

from __future__ import annotations

from threading import Lock

from ulid import ULID


class _Monotonic:
    """Makes ULIDs of which each is greater than the one before, also within a millisecond."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._last = 0

    def next(self) -> ULID:
        with self._lock:
            self._last = max(int(ULID()), self._last + 1)
            return ULID.from_int(self._last)


_ulids = _Monotonic()


def new_id(kind: str) -> str:
    """Return a new identifier such as `evt_01JD...`; it holds no dot, as Standard Webhooks asks.

    Those that one process makes sort by the order in which it made them.
    """
    return f"{kind}_{_ulids.next()}"
