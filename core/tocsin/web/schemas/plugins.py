"""Schemas of installed plugins and kinds of channel."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from pydantic import Field

from tocsin.model import Json
from tocsin.registry import SettingShape
from tocsin.web.parsing import ResponseModel


class PluginState(StrEnum):
    """Whether a node has a plugin."""

    LOADED = "loaded"
    ABSENT = "absent"
    """It is enabled, and cannot be used."""
    NOT_ENABLED = "not-enabled"


class PluginUse(ResponseModel):
    """A table of `plugins.toml` that uses a plugin."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"table": "destinations.soar"}

    table: str = Field(description="Such as `providers.edge`.")
    absent: str | None = Field(description="Why this node does without it; null if it does not.")


class PluginItem(ResponseModel):
    """An installed plugin."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "name": "webhook",
        "distribution": "tocsin",
        "version": "0.1.0",
        "offers": ["destinations"],
    }

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

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "name": "url",
        "type": "text",
        "description": "Where to post to.",
    }

    name: str
    type: str
    required: bool
    default: str | None = Field(description="As it would be written.")
    secret: bool
    common: bool = Field(description="Whether all of its section can be told it.")
    description: str


class PluginKind(ResponseModel):
    """A kind of provider, channel, enricher or investigator."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "section": "destinations",
        "name": "Webhook",
        "summary": "Posts each event, signed, and takes any 2xx answer for a receipt.",
        "streams": [],
    }

    section: str = Field(description="Which tables of `plugins.toml` may use it.")
    name: str
    summary: str
    capabilities: list[str]
    streams: list[str] | None = Field(description="Null where they depend on the settings.")
    permissions: list[str] = Field(description="What it needs at the far side.")
    settings: list[PluginSetting]


class PluginDetail(PluginItem):
    """An installed plugin, and what it offers and takes."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"hooks": ["tocsin_channels"]}

    hooks: list[str]
    kinds: list[PluginKind]


class ChannelSetting(ResponseModel):
    """What a destination of this kind can be told."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "name": "url",
        "type": "text",
        "description": "Where to post to.",
    }

    name: str
    type: str = Field(description="What `plugins.toml` takes, in words.")
    shape: SettingShape = Field(
        description="What a form would ask for; `table` is texts by their names, `anything` what "
        "JSON can hold."
    )
    choices: list[str] = Field(description="For `choice` and `choices`: of these.")
    required: bool
    default: str | None = Field(description="As `plugins.toml` would have it.")
    secret: bool = Field(description="Whether it is kept encrypted, and never answered.")
    local: bool = Field(description="Whether only `plugins.toml` can set it.")
    common: bool = Field(description="Whether every destination can be told it.")
    description: str


class ChannelItem(ResponseModel):
    """A kind of channel, by the plugin that offers it."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "plugin": "webhook",
        "summary": "Posts each event, signed, and takes any 2xx answer for a receipt.",
    }

    plugin: str
    summary: str
    settings: list[ChannelSetting] = Field(description="Its own before the common ones.")


class ChannelList(ResponseModel):
    """Every kind of channel that is enabled."""

    channels: list[ChannelItem]
    total: int
