"""Slack channel: a bot or an incoming webhook."""

from __future__ import annotations

from typing import Any

from tocsin import Channel, Delivery, Health, Receipt, Tools
from tocsin_plugins.slack.bot import Bot
from tocsin_plugins.slack.incoming_webhook import IncomingWebhook
from tocsin_plugins.slack.settings import Settings as SlackSettings


class Slack(Channel[SlackSettings]):
    """Posts events to one channel: as a bot, with one thread per subject, or through a webhook."""

    ordered = True

    def __init__(self, settings: Any, tools: Tools) -> None:
        """Store the settings and tools; perform no I/O."""
        super().__init__(settings, tools)
        self._way = (IncomingWebhook if settings.webhook_url else Bot)(settings, tools)

    async def start(self) -> None:
        """Raise `Misconfigured` for an address that can never be requested."""
        self._way.start()

    async def check(self) -> Health:
        """Report whether Slack would accept a message, as far as known without sending one."""
        return await self._way.check()

    async def deliver(self, delivery: Delivery) -> Receipt:
        """Post the event, and return Slack's ID of its thread.

        Raises `TryLater` for transient failures, `Misconfigured` and `CredentialsRefused` for those
        that need the operator, and `Refused` for permanent ones.
        """
        return await self._way.deliver(delivery)

    async def follow(self, delivery: Delivery) -> Receipt:
        """Update the message of a changed incident, or reply with a report to it."""
        if isinstance(self._way, IncomingWebhook):
            return await super().follow(delivery)
        return await self._way.follow(delivery)
