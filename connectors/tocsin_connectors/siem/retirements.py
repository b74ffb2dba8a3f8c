"""Announced retirements of vendor APIs, from `api_retirements.toml`."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from importlib.resources import files
from typing import Any

from tocsin import ApiRetirement

_FILE = "api_retirements.toml"


def load_retirements(plugin: str) -> tuple[ApiRetirement, ...]:
    """Return the announced ends of the APIs that a plugin uses."""
    return tuple(ApiRetirement(**entry) for entry in _load_entries().get(plugin, ()))


@lru_cache(maxsize=1)
def _load_entries() -> dict[str, list[dict[str, Any]]]:
    """Return the entries of the file by plugin. A date in TOML is a `date`."""
    return tomllib.loads(files(__package__).joinpath(_FILE).read_text(encoding="utf-8"))
