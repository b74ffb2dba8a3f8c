"""What is installed beside a plugin under test: channels and templates that ship."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from tocsin.hookspecs import Channel


def installed_channel(plugin: str) -> type[Channel]:
    """Return the channel of an installed plugin, such as `ticketing`; KeyError where none is."""
    channel: type[Channel] = _module(plugin).tocsin_channels()
    return channel


def shipped_templates() -> Sequence[Path]:
    """Return the folders of the templates that come with Tocsin."""
    return list(_module("templates").tocsin_template_paths())


def _module(plugin: str) -> Any:
    return entry_points(group="tocsin.plugins")[plugin].load()
