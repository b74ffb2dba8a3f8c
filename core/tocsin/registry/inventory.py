"""What a running service has of the plugins that are installed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from tocsin.registry.describing import Description, describe_loaded
from tocsin.registry.file import PluginsFile
from tocsin.registry.installed import InstalledPlugin
from tocsin.registry.loading import Offers


class Inventory:
    """Every installed plugin, and what those offer that were loaded when the file was read."""

    def __init__(
        self,
        file: PluginsFile | None = None,
        installed: Sequence[InstalledPlugin] = (),
        offers: Offers | None = None,
    ) -> None:
        self._file = file or PluginsFile()
        self._installed = installed
        self._offers = offers or Offers()

    @cached_property
    def plugins(self) -> Sequence[Description]:
        """What each of them is, by name, worked out when it is first asked for."""
        return describe_loaded(self._file, self._installed, self._offers)
