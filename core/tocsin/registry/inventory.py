"""What a running service has of the plugins that are installed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from tocsin.registry.describing import PluginDescription, describe_plugins
from tocsin.registry.file import PluginsFile
from tocsin.registry.installed import InstalledPlugin
from tocsin.registry.loading import PluginOffers


class PluginInventory:
    """Every installed plugin, and what those offer that were loaded when the file was read."""

    def __init__(
        self,
        file: PluginsFile | None = None,
        installed: Sequence[InstalledPlugin] = (),
        offers: PluginOffers | None = None,
    ) -> None:
        self._file = file or PluginsFile()
        self._installed = installed
        self._offers = offers or PluginOffers()

    @cached_property
    def plugins(self) -> Sequence[PluginDescription]:
        """What each of them is, by name, worked out when it is first asked for."""
        return describe_plugins(self._file, self._installed, self._offers)
