"""Console pages of plugins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tocsin.credentials import ConsoleRole
from tocsin.hookspecs import ConsolePage as PluginPage
from tocsin.hookspecs import ExtensionRequest
from tocsin.registry import PluginInventory
from tocsin.web.console.page_request import PageRequest
from tocsin.web.console.pages import ConsolePage
from tocsin.web.plugin_extensions import call_plugin, check_sections, guard, require_enabled


def build_plugin_pages(inventory: PluginInventory) -> dict[str, ConsolePage]:
    """Return the pages of the enabled plugins, by title."""
    return {
        f"{page.title} ({plugin})": _build_page(plugin, page)
        for plugin, pages in inventory.console_pages.items()
        for page in pages
    }


def _build_page(plugin: str, page: PluginPage) -> ConsolePage:
    async def view(request: PageRequest) -> Mapping[str, Any]:
        require_enabled(request.services, plugin)
        asked = ExtensionRequest(
            caller=request.user.principal.id,
            path=dict(request.path),
            query=request.query,
            objects=request.services.node.find_objects(plugin),
        )
        sections = await call_plugin(plugin, page.view, asked)
        checked = guard(plugin, lambda: check_sections(sections, page.view))
        return {"plugin": plugin, "title": page.title, "sections": checked}

    path = f"/plugins/{plugin}{page.path}"
    return ConsolePage(
        path=path,
        view=view,
        template="plugin_page.html.j2",
        section=path,
        role=ConsoleRole(page.role),
    )
