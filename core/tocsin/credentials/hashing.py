"""Verification of secrets by Argon2id."""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerifyMismatchError

from tocsin.clock import Clock
from tocsin.credentials.digest_cache import DigestCache
from tocsin.errors import TocsinError

WAITING = 128
"""Runs that may wait for each core, about three seconds of work."""

_argon2 = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)


class BusyError(TocsinError):
    """Too many secrets are waiting for Argon2id."""


class Hasher:
    """Creates and verifies hashes in threads of its own, one for each core."""

    def __init__(self, clock: Clock, *, waiting: int = WAITING) -> None:
        self.runs = 0
        """Number of Argon2id runs."""
        self._cache: DigestCache[str] = DigestCache(clock)
        self._mismatches: DigestCache[str] = DigestCache(clock)
        cores = os.cpu_count() or 1
        self._threads = ThreadPoolExecutor(cores, thread_name_prefix="tocsin-argon2")
        self._waiting = waiting * cores
        self._running: dict[tuple[bytes, str], asyncio.Future[bool]] = {}

    def recall(self, identifier: str, secret: str) -> str | None:
        """Return the stored hash that this secret is known to match, None if there is none.

        Can be called from any thread. Does not run Argon2id.
        """
        return self._cache.recall(self._cache.digest(identifier, secret))

    def is_verifying(self, identifier: str, secret: str) -> bool:
        """Return whether Argon2id is running for this secret."""
        digest = self._cache.digest(identifier, secret)
        return any(running == digest for running, _ in self._running)

    async def hash(self, secret: str) -> str:
        """Return a salted hash to store."""
        self.runs += 1
        return await asyncio.get_running_loop().run_in_executor(self._threads, _argon2.hash, secret)

    async def verify(self, identifier: str, secret: str, stored: str) -> bool:
        """Return whether the secret matches; concurrent callers share one run.

        Raises BusyError if too many runs are waiting.
        """
        flight = self._cache.digest(identifier, secret), stored
        # A run may have ended since the caller last looked.
        if self._cache.recall(flight[0]) == stored:
            return True
        if self._mismatches.recall(self._mismatches.digest(stored, secret)) is not None:
            return False
        run = self._running.get(flight) or self._start(flight, secret)
        # The cancellation of one caller must not affect the others.
        return await asyncio.shield(run)

    def close(self) -> None:
        """Let active runs end and start no new ones."""
        self._threads.shutdown(cancel_futures=True)

    def _start(self, flight: tuple[bytes, str], secret: str) -> asyncio.Future[bool]:
        if len(self._running) >= self._waiting:
            raise BusyError("too many secrets are waiting to be verified")
        self.runs += 1
        loop = asyncio.get_running_loop()
        run = self._running[flight] = loop.run_in_executor(
            self._threads, _matches, flight[1], secret
        )
        mismatch = self._mismatches.digest(flight[1], secret)
        run.add_done_callback(lambda _: self._finish(flight, mismatch, run))
        return run

    def _finish(
        self, flight: tuple[bytes, str], mismatch: bytes, run: asyncio.Future[bool]
    ) -> None:
        del self._running[flight]
        if run.cancelled() or run.exception() is not None:
            return
        if run.result():
            self._cache.add(*flight)
        else:  # a client that keeps a replaced secret sends it again and again
            self._mismatches.add(mismatch, flight[1])


def _matches(stored: str, secret: str) -> bool:
    try:
        return _argon2.verify(stored, secret)
    except (VerifyMismatchError, InvalidHashError):
        return False
