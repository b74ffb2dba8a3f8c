"""Destinations' channel classes and settings, for requests that receivers send."""

from __future__ import annotations

from tocsin.delivery.destinations.channels import ChannelFactory
from tocsin.delivery.destinations.repository import Destination, load_destination
from tocsin.errors import CredentialsRefused, OperatorError
from tocsin.hookspecs import Channel
from tocsin.store import Database

_MOST_SETTINGS = 1_000


class SettledDestinations:
    """Finds the channel classes and settings of destinations, validated once per revision.

    This class does not create channels, because a node that serves only the API does not run
    channels, and because an unauthenticated request must not open connections.
    """

    def __init__(self, channels: ChannelFactory, database: Database) -> None:
        self._channels = channels
        self._database = database
        self._settled: dict[str, tuple[object, type[Channel], Channel.Settings]] = {}

    async def find(self, name: str) -> tuple[type[Channel], Channel.Settings]:
        """Return a destination's channel class and settings.

        Raises `CredentialsRefused` if the destination does not exist or is not available here.
        """
        destination = await self.load(name)
        version = destination.revision, destination.created_at  # a deleted name may be used again
        known = self._settled.get(name)
        if known is not None and known[0] == version:
            return known[1:]
        try:
            kind, settings = self._channels.settle(destination)
        except OperatorError as error:
            raise CredentialsRefused(str(error)) from None
        if len(self._settled) >= _MOST_SETTINGS:
            self._settled.clear()
        self._settled[name] = version, kind, settings
        return kind, settings

    async def load(self, name: str) -> Destination:
        """Return a destination; raise `CredentialsRefused` if it is deleted or disabled."""
        destination = await self._database.lookup(load_destination, name)
        if destination is None or not destination.is_served:
            raise CredentialsRefused("unknown destination")
        return destination
