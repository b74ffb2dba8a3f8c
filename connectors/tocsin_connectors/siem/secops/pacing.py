"""Asking no more often than one may."""

from __future__ import annotations

import asyncio
from collections import deque
from datetime import datetime, timedelta

from tocsin import Clock, TryLater


class RequestQuota:
    """So many turns at most within any stretch of time."""

    def __init__(self, clock: Clock, most: int, within: timedelta, patience: timedelta) -> None:
        """Keep what is needed; nobody waits for a turn longer than `patience`."""
        self._clock = clock
        self._within = within
        self._patience = patience
        self._turns: deque[datetime] = deque(maxlen=most)
        self._waiting = asyncio.Lock()

    async def turn(self) -> None:
        """Return when it is one's turn; `TryLater` where that takes too long."""
        async with self._waiting:
            wait = self._wait()
            if wait > self._patience:
                raise TryLater("the limit of SecOps is reached", after=wait, unsent=True)
            if wait > timedelta(0):
                await self._clock.sleep(wait)
            self._turns.append(self._clock.now())

    def _wait(self) -> timedelta:
        if len(self._turns) < (self._turns.maxlen or 0):
            return timedelta(0)
        return min(self._turns[0] + self._within - self._clock.now(), self._within)
