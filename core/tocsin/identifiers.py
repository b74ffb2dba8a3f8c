"""Identifiers that sort by the order in which they were made."""

from __future__ import annotations

from datetime import datetime
from itertools import count
from secrets import randbits
from threading import Lock
from time import time_ns

from ulid import ULID

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford's base 32, as ULIDs are written
_PAIRS = [first + second for first in _ALPHABET for second in _ALPHABET]


class _MonotonicUlids:
    """Creates ULIDs in strictly ascending order, also within a millisecond.

    Within a millisecond each ULID is the previous one plus one, as the ULID specification says.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._last = 0

    def next(self) -> str:
        with self._lock:
            now = time_ns() // 1_000_000
            self._last = self._last + 1 if self._last >> 80 >= now else int(ULID())
            return _format_ulid(self._last)


def _format_ulid(ulid: int) -> str:
    """Return 26 characters, two at a time, which is faster than the library."""
    return "".join([_PAIRS[ulid >> shift & 1023] for shift in range(120, -1, -10)])


def first_id(kind: str, moment: datetime) -> str:
    """Return an identifier that sorts before all that are made from this moment on."""
    return f"{kind}_{_format_ulid(int(moment.timestamp() * 1_000) << 80)}"


_ulids = _MonotonicUlids()
_TIME = slice(4, 14)
_MOST_RANDOM = slice(-10, None)
_derived = count(randbits(30))


def new_id(kind: str) -> str:
    """Return a new identifier such as `evt_01JD...`, without dots, as Standard Webhooks requires.

    The identifiers of one process sort by creation order.
    """
    return f"{kind}_{_ulids.next()}"


def derive_id(kind: str, source: str) -> str:
    """Return a new identifier with the time of another one, of a kind of three letters.

    Those of different sources sort as these do. The last 30 bits are a counter of this process.
    """
    number = next(_derived)
    end = "".join([_PAIRS[number >> shift & 1023] for shift in (20, 10, 0)])
    return f"{kind}_{source[_TIME]}{source[_MOST_RANDOM]}{end}"
