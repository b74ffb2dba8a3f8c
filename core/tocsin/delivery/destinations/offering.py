"""What destinations can be made of, and what each kind of channel can be told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tocsin.hookspecs import Channel
from tocsin.registry.setting_shapes import Shape, Shaped, shapes_of
from tocsin.registry.settings_schema import Setting, list_settings


@dataclass(frozen=True, slots=True)
class Offered:
    """One setting of a kind of channel."""

    setting: Setting
    shaped: Shaped
    local: bool
    """Whether only `plugins.toml` can set it."""


@dataclass(frozen=True, slots=True)
class Offer:
    """One kind of channel."""

    plugin: str
    summary: str
    settings: tuple[Offered, ...]


def list_offers(kinds: Mapping[str, type[Channel]], receivers: Sequence[str]) -> list[Offer]:
    """Return every kind of channel, by its plugin's name; `receivers` are the templates."""
    return [
        Offer(plugin, _summary(kind), tuple(_settings(kind, receivers)))
        for plugin, kind in sorted(kinds.items())
    ]


def _summary(kind: type[Channel]) -> str:
    return (kind.__doc__ or "").strip().partition("\n")[0]


def _settings(kind: type[Channel], receivers: Sequence[str]) -> Iterator[Offered]:
    """Yield what it can be told; the plugin is named when a destination is made."""
    shapes = {
        **shapes_of(kind.Settings),
        "template": Shaped(Shape.CHOICE, tuple(sorted(receivers))),
    }
    local = kind.Settings.local_fields()
    for setting in list_settings(kind.Settings, Channel.Settings):
        if setting.name != "plugin":
            shaped = shapes.get(setting.name, Shaped(Shape.ANYTHING))
            yield Offered(setting, shaped, setting.name in local)
