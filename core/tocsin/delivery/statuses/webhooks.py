"""Webhooks of receivers, which name objects whose statuses may have changed."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from tocsin.channels import ObjectChannel
from tocsin.clock import Clock
from tocsin.delivery.destinations.channels import ChannelFactory
from tocsin.delivery.destinations.repository import Destination, load_destination
from tocsin.delivery.statuses.repository import mark_due
from tocsin.errors import CredentialsRefused, OperatorError
from tocsin.hookspecs import PushRequest
from tocsin.store import Database

MOST_OBJECTS = 100
"""Maximum number of objects that one webhook can name; further ones are read when they are due."""
_MOST_SETTINGS = 1_000
_log = structlog.get_logger()


class WebhookInbox:
    """Authenticates webhooks, and lets the statuses of the objects that they name be read.

    A webhook is only a hint: statuses always come from the receiver.
    """

    def __init__(self, channels: ChannelFactory, database: Database, clock: Clock) -> None:
        self._channels = channels
        self._database = database
        self._clock = clock
        self._settled: dict[str, tuple[object, type[ObjectChannel], ObjectChannel.Settings]] = {}

    async def authenticate(self, name: str, request: PushRequest) -> Sequence[str]:
        """Return the remote IDs of the objects that a webhook names.

        Raises `CredentialsRefused` if the webhook is not authentic, the destination does not exist,
        or does not accept webhooks.
        """
        destination = await self._database.lookup(load_destination, name)
        if destination is None or not destination.is_served:
            raise CredentialsRefused("unknown destination")
        kind, settings = self._settle(destination)
        try:
            return kind.parse_webhook(settings, request, self._clock.now())[:MOST_OBJECTS]
        except CredentialsRefused:
            raise
        except Exception:  # noqa: BLE001 - whatever a plugin does with a stranger's request
            _log.exception("webhook could not be parsed", destination=destination.name)
            raise CredentialsRefused("the webhook could not be parsed") from None

    async def mark_due(self, name: str, remote_ids: Sequence[str]) -> int:
        """Let the statuses of these objects be read; return how many are read earlier."""
        if not remote_ids:
            return 0
        return await self._database.write(mark_due, name, remote_ids, self._clock.now())

    def _settle(
        self, destination: Destination
    ) -> tuple[type[ObjectChannel], ObjectChannel.Settings]:
        """Return the channel and its settings, which are validated once for each revision."""
        version = destination.revision, destination.created_at  # a deleted name may be used again
        known = self._settled.get(destination.name)
        if known is not None and known[0] == version:
            return known[1:]
        try:
            kind, settings = self._channels.settle(destination)
        except OperatorError as error:
            raise CredentialsRefused(str(error)) from None
        secret = getattr(settings, "webhook_secret", None)
        if secret is None or not issubclass(kind, ObjectChannel):
            raise CredentialsRefused("the destination does not accept webhooks")
        assert isinstance(settings, ObjectChannel.Settings)  # noqa: S101 - those of its channel
        if len(self._settled) >= _MOST_SETTINGS:
            self._settled.clear()
        self._settled[destination.name] = version, kind, settings
        return kind, settings
