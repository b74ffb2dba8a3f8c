"""Delivery by a Slack bot: in threads, updated in place, without duplicates."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import orjson

from tocsin import (
    Broken,
    ChangeType,
    CredentialsRefused,
    Delivery,
    Health,
    PluginFailure,
    Receipt,
    Refused,
    Tools,
    TryLater,
)
from tocsin_plugins.slack.health import check_bot
from tocsin_plugins.slack.messages import (
    PLAIN_TEXT_OPTIONS,
    SlackMessage,
    SlackThread,
    build_metadata,
    find_posted_message,
    find_thread,
    render_content,
)
from tocsin_plugins.slack.settings import Settings
from tocsin_plugins.slack.web_api import WebApi

_SETTLING = timedelta(seconds=3)  # until a search finds a new message
_CLOSED = frozenset(
    {
        "cannot_reply_to_message",
        "message_not_found",
        "restricted_action_thread_locked",
        "thread_not_found",
    }
)
"""Errors that Slack returns if a thread does not accept replies."""


class Bot:
    """Posts, updates and finds messages in one channel with a bot token."""

    def __init__(self, settings: Settings, tools: Tools) -> None:
        self._settings = settings
        self._tools = tools
        self._channel = settings.channel or ""
        self._api = WebApi(settings, tools)
        self._workspace: str | None = None

    def start(self) -> None:
        """Raise `Misconfigured` if Tocsin can never send requests to the address."""
        self._tools.http.check_url(self._settings.api_url)

    async def check(self) -> Health:
        """Check the permissions and whether the bot sees the channel, without posting."""
        return await check_bot(self._api, self._channel)

    async def deliver(self, delivery: Delivery) -> Receipt:
        """Post the event unless the channel already has it, and return its thread's ID."""
        await self._settle(delivery)
        try:
            async with asyncio.timeout(self._settings.timeout.total_seconds()):
                return await self._deliver(delivery)
        except TimeoutError:
            raise TryLater("Slack did not respond before the timeout") from None

    async def follow(self, delivery: Delivery) -> Receipt:
        """Update the message of a changed incident, or reply to it with a report.

        If the channel does not have a message for the incident, the bot does not post one.
        """
        thread = find_thread(delivery, self._channel)
        if thread is None:
            return Receipt(response=b"the channel has no message about this incident")
        if delivery.event.event_type is ChangeType.INVESTIGATION_FINISHED:
            return await self.deliver(delivery)
        try:
            async with asyncio.timeout(self._settings.timeout.total_seconds()):
                await self._update(thread, self._render(delivery))
        except TimeoutError:
            raise TryLater("Slack did not respond before the timeout") from None
        return Receipt(status=200, remote_id=delivery.remote_id)

    async def _deliver(self, delivery: Delivery) -> Receipt:
        body = self._render(delivery)
        thread = find_thread(delivery, self._channel)
        workspace = await self._address()
        answer = await self._found(delivery, thread)
        if answer is None:
            if thread and thread.is_own:
                await self._update(thread, body)
            answer = await self._post(delivery, body, thread)
        message = SlackMessage.of(answer)
        if message is None:
            raise Broken("chat.postMessage returned no message")
        return Receipt(
            status=200,
            response=orjson.dumps(answer),
            remote_id=message.remote_id(self._channel),
            remote_url=message.link(workspace, self._channel) if workspace else None,
        )

    def _render(self, delivery: Delivery) -> dict[str, Any]:
        return render_content(delivery, self._settings, self._tools.public_url)

    async def _settle(self, delivery: Delivery) -> None:
        """Wait until a search can find messages that an earlier attempt posted."""
        if delivery.tried_at is None:
            return
        passed = self._tools.clock.now() - delivery.tried_at
        if timedelta(0) <= passed < _SETTLING:
            await self._tools.clock.sleep(_SETTLING - passed)

    async def _found(
        self, delivery: Delivery, thread: SlackThread | None
    ) -> Mapping[str, Any] | None:
        if delivery.tried_at is None:
            return None
        thread_ts = thread.ts if thread else None
        return await find_posted_message(self._api, self._channel, delivery.event, thread_ts)

    async def _update(self, thread: SlackThread, body: Mapping[str, Any]) -> None:
        """Update the first message to the current content, if Slack still allows this.

        The update comes before the reply, because it can be repeated. The message keeps the
        metadata of the event that it was posted for.
        """
        arguments = {**body, "channel": self._channel, "ts": thread.ts}
        # unlike chat.postMessage, this guesses mentions by default
        arguments |= {"parse": "none", "link_names": False}
        try:
            await self._api.write("chat.update", arguments)
        except CredentialsRefused:
            raise
        except Refused as error:  # the event is still posted
            self._tools.log.warning("message not updated", ts=thread.ts, reason=str(error))

    async def _post(
        self, delivery: Delivery, body: Mapping[str, Any], thread: SlackThread | None
    ) -> Mapping[str, Any]:
        """Post a message, and return it in Slack's representation.

        If the thread no longer exists, post a separate message; only Slack's response shows that
        the thread is gone.
        """
        arguments = {
            **body,
            **PLAIN_TEXT_OPTIONS,
            "channel": self._channel,
            "metadata": build_metadata(delivery.event),
        }
        if thread:
            arguments["thread_ts"] = thread.ts
            arguments["reply_broadcast"] = delivery.event.event_type in self._settings.broadcast
        unless = _CLOSED if thread else ()
        reply = await self._api.write("chat.postMessage", arguments, unless=unless)
        if reply.error:
            return await self._post(delivery, body, None)
        return {**reply.part("message"), "ts": reply.document.get("ts")}

    async def _address(self) -> str | None:
        """Return the workspace URL that people use; None if Slack does not return it."""
        if self._workspace is None:
            try:
                answer = (await self._api.read("auth.test", {})).document
            except PluginFailure:  # the next request reports the problem
                return None
            self._workspace = str(answer.get("url") or "")
        return self._workspace or None
