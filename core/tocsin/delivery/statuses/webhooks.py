"""Webhooks from receivers, which name objects whose statuses may have changed."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from tocsin.channels import ObjectChannel
from tocsin.clock import Clock
from tocsin.delivery.destinations.settled import SettledDestinations
from tocsin.delivery.statuses.repository import mark_due
from tocsin.errors import CredentialsRefused
from tocsin.hookspecs import PushRequest
from tocsin.store import Database

MOST_OBJECTS = 100
"""Maximum number of objects that one webhook can name; Tocsin reads others when they are due."""
_log = structlog.get_logger()


class WebhookInbox:
    """Authenticates webhooks and has the statuses of the named objects read.

    A webhook is only a hint. Tocsin always reads the statuses from the receiver.
    """

    def __init__(self, destinations: SettledDestinations, database: Database, clock: Clock) -> None:
        self._destinations = destinations
        self._database = database
        self._clock = clock

    async def authenticate(self, name: str, request: PushRequest) -> Sequence[str]:
        """Return the remote IDs of the objects that a webhook names.

        Raises `CredentialsRefused` if the webhook is not authentic, or if the destination does not
        exist or does not accept webhooks.
        """
        kind, settings = await self._destinations.find(name)
        secret = getattr(settings, "webhook_secret", None)
        if secret is None or not issubclass(kind, ObjectChannel):
            raise CredentialsRefused("the destination does not accept webhooks")
        try:
            return kind.parse_webhook(settings, request, self._clock.now())[:MOST_OBJECTS]
        except CredentialsRefused:
            raise
        except Exception:  # noqa: BLE001 - whatever a plugin does with a stranger's request
            _log.exception("webhook could not be parsed", destination=name)
            raise CredentialsRefused("the webhook could not be parsed") from None

    async def mark_due(self, name: str, remote_ids: Sequence[str]) -> int:
        """Make these objects' statuses due as soon as possible; return how many changed."""
        if not remote_ids:
            return 0
        return await self._database.write(mark_due, name, remote_ids, self._clock.now())
