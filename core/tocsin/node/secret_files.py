"""Secret files, which a node rereads as soon as they change."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tocsin.credentials import find_key_file
from tocsin.delivery import ChannelFactory, Destination, load_destinations
from tocsin.file_stamps import stamp_file
from tocsin.node.digests import list_plugins, list_secret_files
from tocsin.registry import ManagedBy
from tocsin.settings import Settings
from tocsin.store import Database

if TYPE_CHECKING:
    from tocsin.node.process import ServiceNode


class SecretFiles:
    """Finds a node's secret files and detects whether one of them has changed."""

    def __init__(self, node: ServiceNode) -> None:
        self._node = node
        self._stamps: Mapping[Path, object] = {}
        self._destination_files: Sequence[Path] = ()
        self._listed_revisions: Mapping[str, int] | None = None

    async def record(self, settings: Settings, channels: ChannelFactory) -> None:
        """Find the files again, and record them as they are."""
        self._listed_revisions = None
        self._stamps = await self._stamp(settings, channels)

    async def have_changed(self, settings: Settings, channels: ChannelFactory) -> bool:
        """Return whether a file has changed since it was last recorded, and record the change."""
        stamps = await self._stamp(settings, channels)
        if stamps == self._stamps:
            return False
        self._stamps = stamps
        return True

    async def _stamp(self, settings: Settings, channels: ChannelFactory) -> Mapping[Path, object]:
        """Return the size, the inode and the time of the last change of each secret file."""
        folder = self._node.configuration.path.parent
        paths = [*settings.secret_files.values(), *await self._list_destination_files(channels)]
        if (key_file := find_key_file(settings)) is not None:
            paths.append(key_file)
        for _, item in list_plugins(self._node.configuration):
            paths += item.settings.find_start_files(item.table, folder)
        return await asyncio.to_thread(lambda: {path: stamp_file(path) for path in paths})

    async def _list_destination_files(self, channels: ChannelFactory) -> Sequence[Path]:
        """Return the destinations' secret files; list them again when a revision changes."""
        revisions = self._node.workers.pool.revisions
        if revisions != self._listed_revisions:
            known = await load_file_destinations(self._node.database)
            folder = self._node.configuration.path.parent
            self._destination_files = list_secret_files(known, channels, folder)
            self._listed_revisions = revisions
        return self._destination_files


async def load_file_destinations(database: Database) -> list[Destination]:
    """Return the destinations from a file, which may refer to files of this node."""
    known = await database.read(load_destinations)
    return [each for each in known if each.managed_by is ManagedBy.FILE and each.is_served]
