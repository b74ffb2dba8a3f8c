"""Schemas of installed plugins and channel kinds."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from pydantic import Field

from tocsin.model import Json
from tocsin.registry import SettingShape
from tocsin.web.parsing import ResponseModel


class PluginState(StrEnum):
    """State of a plugin on a node."""

    LOADED = "loaded"
    DEGRADED = "degraded"
    """Loaded, with a defect that Tocsin has observed."""
    ABSENT = "absent"
    """Enabled, but not usable."""
    NOT_ENABLED = "not-enabled"


class PluginUse(ResponseModel):
    """A table of `plugins.toml` that uses a plugin."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"table": "destinations.soar"}

    table: str = Field(description="Name of the table, such as `providers.edge`.")
    absent: str | None = Field(description="Why this node does not use the table; null if it does.")


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
    absent: str | None = Field(
        description="Why the plugin is absent on this node; null if it is present."
    )
    degraded: str | None = Field(
        description="Defects of the plugin or of its tables on this node; null if there are none."
    )
    offers: list[str] = Field(
        description="Tables of `plugins.toml` that can use the plugin; empty unless it is loaded."
    )
    used_by: list[PluginUse]


class PluginList(ResponseModel):
    """All installed plugins."""

    plugins: list[PluginItem]
    total: int


class PluginSetting(ResponseModel):
    """A setting of a table in `plugins.toml`, without its value."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "name": "url",
        "type": "text",
        "description": "URL to which events are sent.",
    }

    name: str
    type: str
    required: bool
    default: str | None = Field(description="Default as written in TOML.")
    secret: bool
    common: bool = Field(description="Whether every table of the section has this setting.")
    description: str


class PluginKind(ResponseModel):
    """A kind of provider, channel, enricher or investigator."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "section": "destinations",
        "name": "Webhook",
        "summary": "Posts each event as a signed request; by default, any 2xx response confirms "
        "the delivery.",
        "streams": [],
    }

    section: str = Field(description="Section of `plugins.toml` that uses this kind.")
    name: str
    summary: str
    capabilities: list[str]
    streams: list[str] | None = Field(
        description="Streams of a provider; null if they depend on the settings."
    )
    permissions: list[str] = Field(description="Permissions required in the remote system.")
    settings: list[PluginSetting]


class PluginDetail(PluginItem):
    """An installed plugin with its kinds and settings."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"hooks": ["tocsin_channels"]}

    hooks: list[str]
    kinds: list[PluginKind]


class ChannelSetting(ResponseModel):
    """A setting for destinations of this kind."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "name": "url",
        "type": "text",
        "description": "URL to which events are sent.",
    }

    name: str
    type: str = Field(description="Type of the value in `plugins.toml`, in words.")
    shape: SettingShape = Field(
        description="Type of the form field. `table` maps names to strings, and `anything` is "
        "any JSON value."
    )
    choices: list[str] = Field(description="Permitted values of a `choice` or `choices`.")
    required: bool
    default: str | None = Field(description="Default as written in TOML.")
    secret: bool = Field(
        description="True if the value is a secret, which the API encrypts and never returns."
    )
    local: bool = Field(description="Whether only `plugins.toml` can contain the setting.")
    common: bool = Field(description="Whether every destination has this setting.")
    description: str


class ChannelItem(ResponseModel):
    """A channel kind of a plugin."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "plugin": "webhook",
        "summary": "Posts each event as a signed request; by default, any 2xx response confirms "
        "the delivery.",
    }

    plugin: str
    summary: str
    settings: list[ChannelSetting] = Field(
        description="This channel's settings, then those of all channels."
    )


class ChannelList(ResponseModel):
    """All channel kinds of enabled plugins."""

    channels: list[ChannelItem]
    total: int
