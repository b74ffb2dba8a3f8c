"""A destination in Slack."""

from __future__ import annotations

from typing import Any

from tocsin import Channel, Delivery, Health, Receipt, Tools
from tocsin_plugins.slack.bot import Bot
from tocsin_plugins.slack.incoming_webhook import IncomingWebhook
from tocsin_plugins.slack.settings import Settings as SlackSettings


class Slack(Channel):
    """Tells events in one channel: by a bot, in a thread for each subject, or by a webhook."""

    class Settings(SlackSettings):
        """What a destination in Slack can be told."""

    settings: SlackSettings
    ordered = True

    def __init__(self, settings: Any, tools: Tools) -> None:
        """Keep what is needed; do no I/O."""
        super().__init__(settings, tools)
        self._way = (IncomingWebhook if settings.webhook_url else Bot)(settings, tools)

    async def start(self) -> None:
        """Raise `Misconfigured` for an address that can never be requested."""
        self._way.start()

    async def check(self) -> Health:
        """Return whether Slack would take a message, as far as can be told without one."""
        return await self._way.check()

    async def deliver(self, delivery: Delivery) -> Receipt:
        """Tell the event, and return what Slack calls the thread that it is told in.

        Raises `TryLater` for what passes, `Misconfigured` and `CredentialsRefused` for what waits
        for the operator, and `Refused` for what will not be different.
        """
        return await self._way.deliver(delivery)
