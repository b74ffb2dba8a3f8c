"""From `plugins.toml` over entry points and checked settings to live plugins."""

from tocsin.registry.configuration import Configuration, Configured, load_configuration
from tocsin.registry.installed import InstalledPlugin, installed_plugins
from tocsin.registry.live import LivePlugins, start_plugins
from tocsin.registry.loading import Absent

__all__ = [
    "Absent",
    "Configuration",
    "Configured",
    "InstalledPlugin",
    "LivePlugins",
    "installed_plugins",
    "load_configuration",
    "start_plugins",
]
