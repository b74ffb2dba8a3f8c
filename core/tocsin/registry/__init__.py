"""From `plugins.toml` over entry points and checked settings to live plugins."""

from tocsin.registry.configuration import Configuration, Configured, load_configuration
from tocsin.registry.file import PluginsFile, read_plugins_file
from tocsin.registry.installed import InstalledPlugin, installed_plugins
from tocsin.registry.live import LivePlugins, start_plugins
from tocsin.registry.loading import Absent

__all__ = [
    "Absent",
    "Configuration",
    "Configured",
    "InstalledPlugin",
    "LivePlugins",
    "PluginsFile",
    "installed_plugins",
    "load_configuration",
    "read_plugins_file",
    "start_plugins",
]
