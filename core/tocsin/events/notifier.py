"""Notifiers that wake waiting tasks."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from tocsin.loops import wait_for_event


class Notifier:
    """Wakes one waiting task; a notification that nobody waits for wakes the next one to wait."""

    def __init__(self) -> None:
        self._notified = asyncio.Event()

    def notify(self) -> None:
        """Wake the waiting task, or the next one to wait."""
        self._notified.set()

    async def wait(self, at_most: timedelta) -> None:
        """Return when notified, or after `at_most`, since other nodes may take the same work."""
        if await wait_for_event(self._notified, at_most.total_seconds()):
            self._notified.clear()


class Notifiers:
    """One notifier per topic, for the work of this node and for announcements of other nodes."""

    def __init__(self) -> None:
        self._notifiers: dict[str, Notifier] = {}

    def __getitem__(self, topic: str) -> Notifier:
        """Return the notifier of a topic."""
        return self._notifiers.setdefault(topic, Notifier())

    def notify_topic(self, topic: str) -> None:
        """Notify an announced topic; an empty topic notifies all, since some may be missing."""
        for notifier in [self[topic]] if topic else list(self._notifiers.values()):
            notifier.notify()
