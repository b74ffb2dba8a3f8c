"""Argon2id for secrets, run once per presented value and process."""

from __future__ import annotations

import asyncio
import hmac
import os
import secrets
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from threading import Lock

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerifyMismatchError

from tocsin.clock import Clock

_argon2 = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)


class Memo:
    """Remembers which presented values proved which stored hash; safe to use from any thread.

    What was presented cannot be found out from it: it is kept under an HMAC with a key that never
    leaves the process. Whoever asks names the hash that is stored now, so a changed or deleted
    record is never overruled.
    """

    def __init__(
        self, clock: Clock, *, size: int = 10_000, lifetime: timedelta = timedelta(minutes=15)
    ) -> None:
        self._clock = clock
        self._size = size
        self._lifetime = lifetime
        self._key = secrets.token_bytes(32)
        self._entries: OrderedDict[bytes, tuple[str, datetime]] = OrderedDict()
        self._lock = Lock()

    def digest(self, key_id: str, secret: str) -> bytes:
        """Return what a presented value is known by here."""
        presented = f"{len(key_id)}:{key_id}{len(secret)}:{secret}"
        return hmac.digest(self._key, presented.encode(), "sha256")

    def add(self, digest: bytes, stored: str) -> None:
        """Remember a success, at the cost of the least recently used one where there are many."""
        with self._lock:
            self._entries[digest] = stored, self._clock.now() + self._lifetime
            self._entries.move_to_end(digest)
            while len(self._entries) > self._size:
                self._entries.popitem(last=False)

    def holds(self, digest: bytes, stored: str) -> bool:
        """Return whether this value proved this very hash not long ago."""
        with self._lock:
            remembered, expires_at = self._entries.get(digest, ("", None))
            if expires_at is None:
                return False
            if self._clock.now() >= expires_at or not hmac.compare_digest(remembered, stored):
                del self._entries[digest]
                return False
            self._entries.move_to_end(digest)
            return True


class Hasher:
    """Makes and verifies hashes in threads of its own, one per core."""

    def __init__(self, clock: Clock) -> None:
        self.runs = 0
        """How often Argon2id was run."""
        self._memo = Memo(clock)
        self._threads = ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="tocsin-argon2")
        self._running: dict[tuple[bytes, str], asyncio.Future[bool]] = {}

    def remembers(self, key_id: str, secret: str, stored: str) -> bool:
        """Return whether the secret is known to match; from any thread, without Argon2id."""
        return self._memo.holds(self._memo.digest(key_id, secret), stored)

    async def hash(self, secret: str) -> str:
        """Return a salted hash to store."""
        self.runs += 1
        return await asyncio.get_running_loop().run_in_executor(self._threads, _argon2.hash, secret)

    async def verify(self, key_id: str, secret: str, stored: str) -> bool:
        """Return whether the secret matches, by one run for everyone who asks meanwhile."""
        flight = self._memo.digest(key_id, secret), stored
        # A run may have ended since the caller last asked the memo.
        if self._memo.holds(*flight):
            return True
        run = self._running.get(flight) or self._start(flight, secret)
        # One caller who goes away takes nothing from the others.
        return await asyncio.shield(run)

    def close(self) -> None:
        """Let what is running end, and start nothing more."""
        self._threads.shutdown(cancel_futures=True)

    def _start(self, flight: tuple[bytes, str], secret: str) -> asyncio.Future[bool]:
        self.runs += 1
        loop = asyncio.get_running_loop()
        run = self._running[flight] = loop.run_in_executor(
            self._threads, _matches, flight[1], secret
        )
        run.add_done_callback(lambda _: self._finish(flight, run))
        return run

    def _finish(self, flight: tuple[bytes, str], run: asyncio.Future[bool]) -> None:
        del self._running[flight]
        if not run.cancelled() and run.exception() is None and run.result():
            self._memo.add(*flight)


def _matches(stored: str, secret: str) -> bool:
    try:
        return _argon2.verify(stored, secret)
    except (VerifyMismatchError, InvalidHashError):
        return False
