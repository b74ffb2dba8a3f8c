"""In-memory cache of credentials that were verified recently."""

from __future__ import annotations

import hmac
import secrets
from collections import OrderedDict
from datetime import datetime, timedelta
from threading import Lock
from typing import Generic, TypeVar

from tocsin.clock import Clock

LIFETIME = timedelta(hours=1)
"""How long a success is remembered: longer than clients wait between two access tokens."""

Fact = TypeVar("Fact")


class VerificationCache(Generic[Fact]):
    """Remembers what presented values have proven; safe to use from any thread.

    What was presented cannot be found out from it: it is kept under an HMAC with a key that never
    leaves the process. Whoever asks compares with what is stored now, so a changed or deleted
    record is never overruled.
    """

    def __init__(self, clock: Clock, *, size: int = 10_000, lifetime: timedelta = LIFETIME) -> None:
        self._clock = clock
        self._size = size
        self._lifetime = lifetime
        self._key = secrets.token_bytes(32)
        self._entries: OrderedDict[bytes, tuple[Fact, datetime]] = OrderedDict()
        self._lock = Lock()

    def digest(self, identifier: str, secret: str) -> bytes:
        """Return what a presented value is known by here."""
        presented = f"{len(identifier)}:{identifier}{len(secret)}:{secret}"
        return hmac.digest(self._key, presented.encode("utf-8", "surrogatepass"), "sha256")

    def add(self, digest: bytes, fact: Fact) -> None:
        """Remember a success, at the cost of the least recently used one where there are many."""
        with self._lock:
            self._entries[digest] = fact, self._clock.now() + self._lifetime
            self._entries.move_to_end(digest)
            while len(self._entries) > self._size:
                self._entries.popitem(last=False)

    def recall(self, digest: bytes) -> Fact | None:
        """Return what this value proved not long ago, None where it proved nothing."""
        with self._lock:
            if digest not in self._entries:
                return None
            fact, expires_at = self._entries[digest]
            if self._clock.now() >= expires_at:
                del self._entries[digest]
                return None
            self._entries.move_to_end(digest)
            return fact
