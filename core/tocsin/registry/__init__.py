"""Plugins: discovery by entry points, configuration by `plugins.toml`, and start."""

from tocsin.registry.configuration import (
    Configuration,
    check_configuration,
    load_configuration,
    strict_problem,
)
from tocsin.registry.entry_points import (
    InstalledPlugin,
    find_code,
    index_by_name,
    installed_plugins,
    list_declared_hooks,
)
from tocsin.registry.factory import (
    LivePlugin,
    LivePlugins,
    PluginFactory,
    start_investigation_plugins,
    start_plugin,
    start_plugins,
    start_providers,
)
from tocsin.registry.inventory import (
    OfferedKind,
    PluginDescription,
    PluginInventory,
    describe_plugin,
    explain_absence,
)
from tocsin.registry.loader import AbsentPlugin, load_commands
from tocsin.registry.parser import ConfiguredPlugin, table_path
from tocsin.registry.plugins_file import PluginsFile, read_plugins_file
from tocsin.registry.reconciliation import (
    ManagedBy,
    PlannedChange,
    StoredObject,
    name_taken_error,
    plan_changes,
)
from tocsin.registry.retention import RetentionSettings, read_retention
from tocsin.registry.settings_schema import (
    SettingDescription,
    SettingShape,
    ShapedSetting,
    list_setting_shapes,
    list_settings,
)
from tocsin.registry.toml_lines import KeyLines
from tocsin.validation import NAME_PATTERN

__all__ = [
    "NAME_PATTERN",
    "AbsentPlugin",
    "Configuration",
    "ConfiguredPlugin",
    "InstalledPlugin",
    "KeyLines",
    "LivePlugin",
    "LivePlugins",
    "ManagedBy",
    "OfferedKind",
    "PlannedChange",
    "PluginDescription",
    "PluginFactory",
    "PluginInventory",
    "PluginsFile",
    "RetentionSettings",
    "SettingDescription",
    "SettingShape",
    "ShapedSetting",
    "StoredObject",
    "check_configuration",
    "describe_plugin",
    "explain_absence",
    "find_code",
    "index_by_name",
    "installed_plugins",
    "list_declared_hooks",
    "list_setting_shapes",
    "list_settings",
    "load_commands",
    "load_configuration",
    "name_taken_error",
    "plan_changes",
    "read_plugins_file",
    "read_retention",
    "start_investigation_plugins",
    "start_plugin",
    "start_plugins",
    "start_providers",
    "strict_problem",
    "table_path",
]
