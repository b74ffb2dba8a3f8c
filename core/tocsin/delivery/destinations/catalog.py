"""The catalog of channels that destinations can use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tocsin.hookspecs import Channel
from tocsin.registry import (
    SettingDescription,
    SettingShape,
    ShapedSetting,
    list_setting_shapes,
    list_settings,
)


@dataclass(frozen=True, slots=True)
class OfferedSetting:
    """A setting of a channel's destinations."""

    setting: SettingDescription
    shaped: ShapedSetting
    local: bool
    """Whether the setting is accepted only in `plugins.toml`."""


@dataclass(frozen=True, slots=True)
class ChannelOffer:
    """A channel that destinations can use, and its settings."""

    plugin: str
    summary: str
    settings: tuple[OfferedSetting, ...]


def list_channel_offers(
    kinds: Mapping[str, type[Channel]], receivers: Sequence[str]
) -> list[ChannelOffer]:
    """Return all channels, sorted by plugin name; `receivers` have templates."""
    return [
        ChannelOffer(plugin, _summary(kind), tuple(_settings(kind, receivers)))
        for plugin, kind in sorted(kinds.items())
    ]


def _summary(kind: type[Channel]) -> str:
    return (kind.__doc__ or "").strip().partition("\n")[0]


def _settings(kind: type[Channel], receivers: Sequence[str]) -> Iterator[OfferedSetting]:
    """Yield the settings except `plugin`, which is set when a destination is created."""
    shapes = {
        **list_setting_shapes(kind.Settings),
        "template": ShapedSetting(SettingShape.CHOICE, tuple(sorted(receivers))),
    }
    local = kind.Settings.local_fields()
    for setting in list_settings(kind.Settings, Channel.Settings):
        if setting.name != "plugin":
            shaped = shapes.get(setting.name, ShapedSetting(SettingShape.ANYTHING))
            yield OfferedSetting(setting, shaped, setting.name in local)
