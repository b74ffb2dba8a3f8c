"""Base of the plugin interfaces that are made from settings and tools."""

from __future__ import annotations

from typing import Any, ClassVar, Generic, TypeVar, get_args

from tocsin.fields import PluginSettings
from tocsin.hookspecs.tools import Tools

S = TypeVar("S", bound=PluginSettings)


class Configurable(Generic[S]):
    """An object that is made from its settings and tools.

    The type argument becomes `Settings`: `class Acme(Provider[AcmeSettings])`. A class `Settings`
    inside of the plugin's class works too.
    """

    Settings: ClassVar[type[PluginSettings]]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for base in vars(cls).get("__orig_bases__", ()):
            for kind in get_args(base):
                if isinstance(kind, type) and issubclass(kind, PluginSettings):
                    cls.Settings = kind

    def __init__(self, settings: S, tools: Tools) -> None:
        """Store the arguments; do not perform I/O.

        `settings` is an instance of this class's `Settings`.
        """
        self.settings = settings
        self.tools = tools
