"""Reading which plugins there are, and what each offers and takes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import asdict
from enum import StrEnum
from typing import Any

from pydantic import Field

from tocsin.registry import OfferedKind, PluginDescription
from tocsin.web.context import RequestContext, Response
from tocsin.web.parsing import ResponseModel
from tocsin.web.routes.fields import not_found


class PluginState(StrEnum):
    """Whether a node has a plugin."""

    LOADED = "loaded"
    ABSENT = "absent"
    """It is enabled, and cannot be used."""
    NOT_ENABLED = "not-enabled"


class PluginUse(ResponseModel):
    """A table of `plugins.toml` that uses a plugin."""

    table: str = Field(description="Such as `providers.edge`.")
    absent: str | None = Field(description="Why this node does without it; null if it does not.")


class PluginItem(ResponseModel):
    """An installed plugin."""

    name: str
    distribution: str
    version: str
    state: PluginState
    absent: str | None = Field(description="Why this node does not have it; null if it does.")
    offers: list[str] = Field(
        description="Which tables of `plugins.toml` may use it; none unless it is loaded."
    )
    used_by: list[PluginUse]


class PluginList(ResponseModel):
    """Every installed plugin."""

    plugins: list[PluginItem]
    total: int


class PluginSetting(ResponseModel):
    """What a table of `plugins.toml` can say; never what it says."""

    name: str
    type: str
    required: bool
    default: str | None = Field(description="As it would be written.")
    secret: bool
    common: bool = Field(description="Whether all of its section can be told it.")
    description: str


class PluginKind(ResponseModel):
    """A kind of provider, channel, enricher or investigator."""

    section: str = Field(description="Which tables of `plugins.toml` may use it.")
    name: str
    summary: str
    capabilities: list[str]
    streams: list[str] | None = Field(description="Null where they depend on the settings.")
    permissions: list[str] = Field(description="What it needs at the far side.")
    settings: list[PluginSetting]


class PluginDetail(PluginItem):
    """An installed plugin, and what it offers and takes."""

    hooks: list[str]
    kinds: list[PluginKind]


async def list_plugins(call: RequestContext) -> Response:
    """Answer every plugin that is installed, by name, and what this node has of each."""
    found = await _describe_plugins(call)
    left_out = _list_absences(call)
    items = [_represent(it, left_out) for it in found.values()]
    return Response({"plugins": items, "total": len(items)})


async def get_plugin(call: RequestContext) -> Response:
    """Answer what one plugin offers and takes; of one that is not loaded, what is known."""
    found = (await _describe_plugins(call)).get(call.path["plugin"])
    if found is None:
        raise not_found("plugin")
    kinds = [_kind(kind) for kind in found.kinds]
    detail = {"hooks": list(found.hooks), "kinds": kinds}
    return Response(_represent(found, _list_absences(call)) | detail)


async def _describe_plugins(call: RequestContext) -> Mapping[str, PluginDescription]:
    # at first a schema is made of all settings of every plugin, which takes a while
    plugins = await asyncio.to_thread(lambda: call.services.inventory.plugins)
    return {plugin.name: plugin for plugin in plugins}


def _list_absences(call: RequestContext) -> Mapping[str, str]:
    return {absent.name: absent.reason for absent in call.services.left_out()}


def _represent(found: PluginDescription, left_out: Mapping[str, str]) -> dict[str, Any]:
    return {
        "name": found.name,
        "distribution": found.distribution,
        "version": found.version,
        "state": _state(found),
        "absent": found.absent,
        "offers": list(dict.fromkeys(kind.section for kind in found.kinds)),
        "used_by": [{"table": it, "absent": left_out.get(it)} for it in found.used_by],
    }


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
