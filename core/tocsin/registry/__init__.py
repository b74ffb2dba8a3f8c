"""From `plugins.toml` over entry points and checked settings to live plugins."""

from tocsin.registry.configuration import (
    Configuration,
    judge_configuration,
    load_configuration,
    not_strict,
)
from tocsin.registry.describing import Description, Kind
from tocsin.registry.file import NAME_PATTERN, PluginsFile, read_plugins_file
from tocsin.registry.installed import InstalledPlugin, installed_plugins
from tocsin.registry.inventory import Inventory
from tocsin.registry.live import (
    Live,
    LivePlugins,
    Maker,
    start_investigating,
    start_plugins,
    start_providers,
)
from tocsin.registry.loading import Absent
from tocsin.registry.planning import Known, ManagedBy, Step, plan, taken
from tocsin.registry.reading import Configured

__all__ = [
    "NAME_PATTERN",
    "Absent",
    "Configuration",
    "Configured",
    "Description",
    "InstalledPlugin",
    "Inventory",
    "Kind",
    "Known",
    "Live",
    "LivePlugins",
    "Maker",
    "ManagedBy",
    "PluginsFile",
    "Step",
    "installed_plugins",
    "judge_configuration",
    "load_configuration",
    "not_strict",
    "plan",
    "read_plugins_file",
    "start_investigating",
    "start_plugins",
    "start_providers",
    "taken",
]
