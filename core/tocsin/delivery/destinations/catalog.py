"""The catalog of channels that destinations can use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tocsin.hookspecs import Channel
from tocsin.registry.settings_schema import (
    SettingDescription,
    SettingShape,
    ShapedSetting,
    list_setting_shapes,
    list_settings,
)


@dataclass(frozen=True, slots=True)
class OfferedSetting:
    """One setting of a kind of channel."""

    setting: SettingDescription
    shaped: ShapedSetting
    local: bool
    """Whether only `plugins.toml` can set it."""


@dataclass(frozen=True, slots=True)
class ChannelOffer:
    """One kind of channel."""

    plugin: str
    summary: str
    settings: tuple[OfferedSetting, ...]


def list_channel_offers(
    kinds: Mapping[str, type[Channel]], receivers: Sequence[str]
) -> list[ChannelOffer]:
    """Return every kind of channel, by its plugin's name; `receivers` are the templates."""
    return [
        ChannelOffer(plugin, _summary(kind), tuple(_settings(kind, receivers)))
        for plugin, kind in sorted(kinds.items())
    ]


def _summary(kind: type[Channel]) -> str:
    return (kind.__doc__ or "").strip().partition("\n")[0]


def _settings(kind: type[Channel], receivers: Sequence[str]) -> Iterator[OfferedSetting]:
    """Yield what it can be told; the plugin is named when a destination is made."""
    shapes = {
        **list_setting_shapes(kind.Settings),
        "template": ShapedSetting(SettingShape.CHOICE, tuple(sorted(receivers))),
    }
    local = kind.Settings.local_fields()
    for setting in list_settings(kind.Settings, Channel.Settings):
        if setting.name != "plugin":
            shaped = shapes.get(setting.name, ShapedSetting(SettingShape.ANYTHING))
            yield OfferedSetting(setting, shaped, setting.name in local)
