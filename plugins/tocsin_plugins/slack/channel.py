"""Slack channel: a bot or an incoming webhook."""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus
from typing import Any

import orjson

from tocsin import (
    Broken,
    Channel,
    Delivery,
    Health,
    MessageAction,
    PushRequest,
    Receipt,
    Tools,
)
from tocsin_plugins.slack.bot import Bot
from tocsin_plugins.slack.incoming_webhook import IncomingWebhook
from tocsin_plugins.slack.interactions import parse_interaction
from tocsin_plugins.slack.settings import Settings as SlackSettings


class Slack(Channel[SlackSettings]):
    """Posts events to one Slack channel, through a bot or an incoming webhook."""

    ordered = True

    def __init__(self, settings: Any, tools: Tools) -> None:
        """Store the settings and tools; perform no I/O."""
        super().__init__(settings, tools)
        self._way = (IncomingWebhook if settings.webhook_url else Bot)(settings, tools)

    async def start(self) -> None:
        """Raise `Misconfigured` if Tocsin can never send requests to the address."""
        self._way.start()

    async def check(self) -> Health:
        """Report, without posting a message, whether Slack would probably accept one."""
        return await self._way.check()

    async def deliver(self, delivery: Delivery) -> Receipt:
        """Post the event, and return the ID of its thread.

        Raises `TryLater` for transient failures, `Misconfigured` and `CredentialsRefused` for
        failures that an operator must fix, and `Refused` for permanent failures.
        """
        return await self._way.deliver(delivery)

    async def follow(self, delivery: Delivery) -> Receipt:
        """Update the message of a changed incident, or reply to it with a report."""
        if isinstance(self._way, IncomingWebhook):
            return await super().follow(delivery)
        return await self._way.follow(delivery)

    @classmethod
    def parse_action(
        cls, settings: SlackSettings, request: PushRequest, now: datetime, *, public_url: str
    ) -> MessageAction | None:
        """Return the button that a person pressed, if Slack signed the request."""
        return parse_interaction(settings, request, now, public_url)

    async def reply(self, action: MessageAction, text: str) -> None:
        """Show a text to the person who pressed a button, below the message."""
        assert action.reply_to is not None  # noqa: S101 - otherwise, it is not called
        content = {"response_type": "ephemeral", "replace_original": False, "text": _escape(text)}
        response = await self.tools.http.request(
            "POST",
            action.reply_to,
            headers={"Content-Type": "application/json; charset=utf-8"},
            content=orjson.dumps(content),
        )
        if response.status != HTTPStatus.OK:
            raise Broken(f"Slack returned {response.status} when Tocsin replied to a button")


def _escape(text: str) -> str:
    """Escape text for a message: https://docs.slack.dev/messaging/formatting-message-text."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
