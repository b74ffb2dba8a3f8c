"""Endpoints for installed plugins and their channel kinds."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection

from tocsin.credentials import ConsoleRole
from tocsin.delivery import ChannelOffer
from tocsin.registry import OfferedKind, PluginDescription
from tocsin.web.context import AccessRole, Endpoint, RequestContext, Response
from tocsin.web.record_problems import PLUGIN_NOT_FOUND
from tocsin.web.schemas.plugins import ChannelList, PluginDetail, PluginList, PluginState


async def list_plugins(call: RequestContext) -> Response:
    """Return all installed plugins by name, with their state on this node."""
    found = await _describe_plugins(call)
    left_out, degraded = _list_absences(call), call.services.node.degraded
    items = [_represent(plugin, left_out, degraded) for plugin in found.values()]
    return Response({"plugins": items, "total": len(items)})


async def get_plugin(call: RequestContext) -> Response:
    """Return a plugin. If it is loaded, the response contains its kinds and settings."""
    found = (await _describe_plugins(call)).get(call.path["plugin"])
    if found is None:
        raise PLUGIN_NOT_FOUND.error()
    kinds = [_kind(kind) for kind in found.kinds]
    detail = {"hooks": list(found.hooks), "kinds": kinds}
    left_out, degraded = _list_absences(call), call.services.node.degraded
    return Response(_represent(found, left_out, degraded) | detail)


async def _describe_plugins(call: RequestContext) -> Mapping[str, PluginDescription]:
    # at first a schema is made of all settings of every plugin, which takes a while
    plugins = await asyncio.to_thread(lambda: call.services.inventory.plugins)
    return {plugin.name: plugin for plugin in plugins}


def _list_absences(call: RequestContext) -> Mapping[str, str]:
    return {absent.name: absent.reason for absent in call.services.node.absent}


def _represent(
    found: PluginDescription, left_out: Mapping[str, str], degraded: Mapping[str, str]
) -> dict[str, Any]:
    defects = _find_defects(found, degraded)
    return {
        "name": found.name,
        "distribution": found.distribution,
        "version": found.version,
        "state": PluginState.DEGRADED if defects else _state(found),
        "absent": found.absent,
        "degraded": defects,
        "offers": list(dict.fromkeys(kind.section for kind in found.kinds)),
        "used_by": [{"table": table, "absent": left_out.get(table)} for table in found.used_by],
    }


def _find_defects(found: PluginDescription, degraded: Mapping[str, str]) -> str | None:
    """Return the reason why a plugin or its objects are degraded; None if they are not."""
    if not found.enabled:
        return None
    paths = (f"plugins.{found.name}", f"destinations.hook:{found.name}", *found.used_by)
    return "; ".join(f"{path}: {degraded[path]}" for path in paths if path in degraded) or None


def _state(found: PluginDescription) -> PluginState:
    if not found.enabled:
        return PluginState.NOT_ENABLED
    return PluginState.ABSENT if found.absent else PluginState.LOADED


def _kind(kind: OfferedKind) -> dict[str, Any]:
    return {
        "section": kind.section,
        "name": kind.name,
        "summary": kind.summary,
        "capabilities": list(kind.capabilities),
        "streams": None if kind.streams is None else list(kind.streams),
        "permissions": list(kind.permissions),
        "settings": [asdict(setting) for setting in kind.settings],
    }


def list_channels(_connection: Connection, call: RequestContext) -> Response:
    """Return the channel kinds of this node by name, with their settings."""
    offers = call.services.destinations.validator.list_offers()
    return Response(
        {"channels": [_represent_channel(offer) for offer in offers], "total": len(offers)}
    )


def _represent_channel(offer: ChannelOffer) -> dict[str, Any]:
    settings = [
        {
            "name": item.setting.name,
            "type": item.setting.type,
            "shape": item.shaped.shape,
            "choices": list(item.shaped.choices),
            "required": item.setting.required,
            "default": item.setting.default,
            "secret": item.setting.secret,
            "local": item.local,
            "common": item.setting.common,
            "description": item.setting.description,
        }
        for item in offer.settings
    ]
    return {"plugin": offer.plugin, "summary": offer.summary, "settings": settings}


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/api/admin/plugins",
        access=AccessRole.ADMIN,
        summary="List installed plugins and their state on this node",
        handler=list_plugins,
        response=PluginList,
    ),
    Endpoint(
        method="GET",
        path="/api/admin/plugins/{plugin}",
        access=AccessRole.ADMIN,
        summary="Get a plugin with its kinds and settings",
        handler=get_plugin,
        response=PluginDetail,
        problems=(PLUGIN_NOT_FOUND,),
    ),
    Endpoint(
        method="GET",
        path="/api/admin/channels",
        access=AccessRole.ADMIN,
        role=ConsoleRole.VIEWER,
        summary="List channel kinds for destinations",
        handler=list_channels,
        response=ChannelList,
    ),
)
