"""Rule for the event loop, which plugins share with the service."""

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
        """A plugin never blocks the event loop for 0.2 seconds or longer, during the test of this
        rule or any other rule.

        Sign-in, deliveries and all other plugins wait while the loop is blocked. Use `await` or
        `asyncio.to_thread`.
        """
        await self.exercise()
