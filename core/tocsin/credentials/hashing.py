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
from tocsin.errors import TocsinError

LIFETIME = timedelta(hours=1)
"""How long a success is remembered: longer than clients wait between two access tokens."""
WAITING = 128
"""How many runs may wait for each core: some three seconds of them."""

_argon2 = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)


class Memo:
    """Remembers which presented values proved which stored hash; safe to use from any thread.

    What was presented cannot be found out from it: it is kept under an HMAC with a key that never
    leaves the process. Whoever asks names the hash that is stored now, so a changed or deleted
    record is never overruled.
    """

    def __init__(self, clock: Clock, *, size: int = 10_000, lifetime: timedelta = LIFETIME) -> None:
        self._clock = clock
        self._size = size
        self._lifetime = lifetime
        self._key = secrets.token_bytes(32)
        self._entries: OrderedDict[bytes, tuple[str, datetime]] = OrderedDict()
        self._lock = Lock()

    def digest(self, identifier: str, secret: str) -> bytes:
        """Return what a presented value is known by here."""
        presented = f"{len(identifier)}:{identifier}{len(secret)}:{secret}"
        return hmac.digest(self._key, presented.encode(), "sha256")

    def add(self, digest: bytes, stored: str) -> None:
        """Remember a success, at the cost of the least recently used one where there are many."""
        with self._lock:
            self._entries[digest] = stored, self._clock.now() + self._lifetime
            self._entries.move_to_end(digest)
            while len(self._entries) > self._size:
                self._entries.popitem(last=False)

    def recall(self, digest: bytes) -> str | None:
        """Return the hash that this value proved not long ago, None where it proved none."""
        with self._lock:
            if digest not in self._entries:
                return None
            stored, expires_at = self._entries[digest]
            if self._clock.now() >= expires_at:
                del self._entries[digest]
                return None
            self._entries.move_to_end(digest)
            return stored


class BusyError(TocsinError):
    """So many secrets wait for Argon2id already that one more is turned away."""


class Hasher:
    """Makes and verifies hashes in threads of its own, one per core."""

    def __init__(self, clock: Clock, *, waiting: int = WAITING) -> None:
        self.runs = 0
        """How often Argon2id was run."""
        self._memo = Memo(clock)
        cores = os.cpu_count() or 1
        self._threads = ThreadPoolExecutor(cores, thread_name_prefix="tocsin-argon2")
        self._waiting = waiting * cores
        self._running: dict[tuple[bytes, str], asyncio.Future[bool]] = {}

    def recall(self, identifier: str, secret: str) -> str | None:
        """Return the stored hash that this secret is known to match, None where none is known.

        From any thread, without Argon2id.
        """
        return self._memo.recall(self._memo.digest(identifier, secret))

    def is_verifying(self, identifier: str, secret: str) -> bool:
        """Return whether a run for this secret is under way."""
        digest = self._memo.digest(identifier, secret)
        return any(running == digest for running, _ in self._running)

    async def hash(self, secret: str) -> str:
        """Return a salted hash to store."""
        self.runs += 1
        return await asyncio.get_running_loop().run_in_executor(self._threads, _argon2.hash, secret)

    async def verify(self, identifier: str, secret: str, stored: str) -> bool:
        """Return whether the secret matches, by one run for everyone who asks meanwhile.

        Raises BusyError where too many wait already.
        """
        flight = self._memo.digest(identifier, secret), stored
        # A run may have ended since the caller last asked the memo.
        if self._memo.recall(flight[0]) == stored:
            return True
        run = self._running.get(flight) or self._start(flight, secret)
        # One caller who goes away takes nothing from the others.
        return await asyncio.shield(run)

    def close(self) -> None:
        """Let what is running end, and start nothing more."""
        self._threads.shutdown(cancel_futures=True)

    def _start(self, flight: tuple[bytes, str], secret: str) -> asyncio.Future[bool]:
        if len(self._running) >= self._waiting:
            raise BusyError("too many secrets wait to be verified")
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
