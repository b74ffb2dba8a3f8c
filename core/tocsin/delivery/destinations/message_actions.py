"""Requests from chat platforms when people press buttons in messages."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import structlog

from tocsin.clock import Clock
from tocsin.delivery.destinations.channels import ChannelFactory
from tocsin.delivery.destinations.settled import SettledDestinations
from tocsin.errors import CredentialsRefused, OperatorError, PluginFailure
from tocsin.hookspecs import MessageAction, PushRequest

REPLY_TIMEOUT = timedelta(seconds=2)
"""Time limit of a reply. Slack requires the response to its request within 3 seconds."""
_log = structlog.get_logger()


class MessageActionInbox:
    """Authenticates requests from buttons, and replies to the people who pressed them."""

    def __init__(
        self, channels: ChannelFactory, destinations: SettledDestinations, clock: Clock
    ) -> None:
        self._channels = channels
        self._destinations = destinations
        self._clock = clock

    async def authenticate(self, name: str, request: PushRequest) -> MessageAction | None:
        """Return the button that a person pressed; None if the request is about something else.

        Raises `CredentialsRefused` if the request is not authentic, or if the destination does not
        exist or does not support buttons.
        """
        kind, settings = await self._destinations.find(name)
        try:
            now = self._clock.now()
            return kind.parse_action(settings, request, now, public_url=self._channels.public_url)
        except CredentialsRefused:
            raise
        except NotImplementedError:
            raise CredentialsRefused("the destination does not support buttons") from None
        except Exception:  # noqa: BLE001 - whatever a plugin does with a stranger's request
            _log.exception("button could not be parsed", destination=name)
            raise CredentialsRefused("the request could not be parsed") from None

    async def reply(self, name: str, action: MessageAction, text: str) -> None:
        """Show a text to the person who pressed a button; a failure is only logged."""
        if action.reply_to is None:
            return
        try:
            async with asyncio.timeout(REPLY_TIMEOUT.total_seconds()):
                await self._send(name, action, text)
        except (TimeoutError, OperatorError, PluginFailure) as error:
            reason = str(error) or "the receiver did not respond in time"
            _log.warning("no reply to a button", destination=name, reason=reason)
        except Exception:  # noqa: BLE001 - whatever a plugin raises; the change is stored
            _log.exception("no reply to a button", destination=name)

    async def _send(self, name: str, action: MessageAction, text: str) -> None:
        live = await self._channels.make(await self._destinations.load(name))
        try:
            await live.plugin.reply(action, text)
        finally:
            await live.close()
