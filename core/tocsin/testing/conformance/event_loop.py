"""Rule for the event loop, which a plugin shares with the whole service."""

from __future__ import annotations

from abc import ABC, abstractmethod

from tocsin.testing.conformance.rules import rule


class EventLoopRules(ABC):
    """Rules for a plugin's use of the event loop."""

    @abstractmethod
    async def exercise(self) -> None:
        """Use the plugin as the service does."""

    @rule
    async def test_the_event_loop_is_not_blocked(self) -> None:
        """A plugin never holds the event loop for 0.2 seconds, in this rule or any other one.

        Everything else waits meanwhile: sign-in, deliveries, all other plugins. Await, or use
        `asyncio.to_thread`.
        """
        await self.exercise()
