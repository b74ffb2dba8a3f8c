"""Installed and enabled plugins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from tocsin.credentials import ConsoleRole
from tocsin.web.console.page_request import PageRequest
from tocsin.web.console.pages import ConsoleAction, ConsolePage
from tocsin.web.routes.plugins import get_plugin, list_plugins
from tocsin.web.schemas.plugins import PluginState

_LIST, _ONE = "/admin/plugins", "/admin/plugins/{plugin}"
_PLACES = {"providers": "/providers#{}", "destinations": "/destinations/{}"}


async def show_plugins(request: PageRequest) -> Mapping[str, Any]:
    """Return the enabled plugins and the others."""
    plugins = (await request.ask(list_plugins, {}))["plugins"]
    return {
        "enabled": [
            _add_links(plugin) for plugin in plugins if plugin["state"] != PluginState.NOT_ENABLED
        ],
        "others": [plugin for plugin in plugins if plugin["state"] == PluginState.NOT_ENABLED],
    }


async def show_plugin(request: PageRequest) -> Mapping[str, Any]:
    """Return a plugin with its kinds and settings."""
    return {"plugin": _add_links(await request.ask(get_plugin))}


def _add_links(plugin: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the plugin with links to the pages of the tables that use it."""
    return {
        **plugin,
        "used_by": [{**use, "place": link_to_table(use)} for use in plugin["used_by"]],
    }


def link_to_table(use: Mapping[str, Any]) -> str | None:
    """Return the page of a table of `plugins.toml`, None if it has none or is absent."""
    section, _, name = use["table"].partition(".")
    is_there = section in _PLACES and use["absent"] is None
    return _PLACES[section].format(quote(name, safe="")) if is_there else None


PAGES = (
    ConsolePage(
        path=_LIST,
        view=show_plugins,
        template="plugins.html.j2",
        section="plugins",
        role=ConsoleRole.ADMIN,
    ),
    ConsolePage(
        path=_ONE,
        view=show_plugin,
        template="plugin.html.j2",
        section="plugins",
        role=ConsoleRole.ADMIN,
    ),
)
ACTIONS: tuple[ConsoleAction, ...] = ()
