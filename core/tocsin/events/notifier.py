"""Notifiers that wake waiting tasks."""

from __future__ import annotations

import asyncio
from datetime import timedelta


class Notifier:
    """Rung by whoever made work. A ring that nobody heard is heard by the next to wait."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()

    def notify(self) -> None:
        """Wake the one who waits, or the next one to."""
        self._rung.set()

    async def wait(self, at_most: timedelta) -> None:
        """Return when the bell was rung, or after `at_most`: a backstop, since nodes share work."""
        try:
            async with asyncio.timeout(at_most.total_seconds()):
                await self._rung.wait()
        except TimeoutError:
            return
        self._rung.clear()


class Notifiers:
    """A bell for each topic, rung by this node's own work and by what other nodes announce."""

    def __init__(self) -> None:
        self._bells: dict[str, Notifier] = {}

    def __getitem__(self, topic: str) -> Notifier:
        """Return the topic's bell."""
        return self._bells.setdefault(topic, Notifier())

    def notify_topic(self, topic: str) -> None:
        """Ring the bell that an announcement names, or every one where something was missed."""
        for bell in [self[topic]] if topic else list(self._bells.values()):
            bell.notify()
