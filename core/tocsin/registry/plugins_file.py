"""The file `plugins.toml`, before any plugin is imported."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tocsin.errors import ConfigurationError, ConfigurationProblem
from tocsin.registry.entry_points import ON_BY_DEFAULT
from tocsin.validation import NAME_PATTERN, explain_errors

_NAME = re.compile(NAME_PATTERN)


class PluginsFile(BaseModel):
    """Top level of `plugins.toml`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: tuple[str, ...] = Field(
        default=(), description="Names of the plugins to import (the names of their entry points)."
    )
    disabled: tuple[str, ...] = Field(
        default=(), description="Plugins that are enabled by default and that you want to disable."
    )
    strict: bool = Field(
        default=False, description="Whether Tocsin refuses to start if a plugin cannot be loaded."
    )
    providers: dict[str, dict[str, Any]] = Field(
        default={}, description="[providers.<name>]: SIEMs to read."
    )
    destinations: dict[str, dict[str, Any]] = Field(
        default={}, description="[destinations.<name>]: receivers of events."
    )

    enrichers: dict[str, dict[str, Any]] = Field(
        default={}, description="[enrichers.<name>]: sources of information about entities."
    )
    schedules: dict[str, dict[str, Any]] = Field(
        default={}, description="[schedules.<name>]: recurring investigations."
    )
    investigator: dict[str, Any] = Field(
        default={}, description="[investigator]: settings of investigations."
    )
    intake: dict[str, Any] = Field(
        default={}, description="[intake]: where Tocsin keeps accepted pushes until it stores them."
    )
    environment: dict[str, Any] = Field(
        default={}, description="[environment]: internal and well-known entities."
    )
    retention: dict[str, Any] = Field(
        default={}, description="[retention]: how long to keep each kind of record."
    )

    def enables(self, name: str) -> bool:
        """Return whether a plugin of this name is imported."""
        return name in self.enabled or (name in ON_BY_DEFAULT and name not in self.disabled)


SECTIONS = frozenset(PluginsFile.model_fields) - {"enabled", "disabled", "strict"}
"""Permitted sections of `plugins.toml`."""


def read_plugins_file(path: Path) -> tuple[PluginsFile, list[ConfigurationProblem]]:
    """Return the well-formed content of the file, and the problems of the rest.

    Raises ConfigurationError if the file cannot be read at all.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        expected = "set TOCSIN_PLUGINS_FILE to a file that this user can read"
        raise _unreadable(path, str(error.strerror), expected) from error
    except UnicodeDecodeError as error:
        raise _unreadable(path, "not UTF-8", "save it as UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise _unreadable(
            path, f"not valid TOML: {error}", "fix the syntax at this position"
        ) from error
    try:
        return PluginsFile.model_validate(content), []
    except ValidationError as error:
        mistakes = list(explain_errors(error, PluginsFile))
    wrong = {mistake.path[0] for mistake in mistakes}
    known = {name: value for name, value in content.items() if name not in wrong}
    return PluginsFile.model_validate(known), [
        ConfigurationProblem(path.name, ".".join(mistake.path), mistake.found, mistake.expected)
        for mistake in mistakes
    ]


def _unreadable(path: Path, found: str, expected: str) -> ConfigurationError:
    return ConfigurationError([ConfigurationProblem(str(path), "", found, expected)])


def is_name(name: str) -> bool:
    """Return whether a name is permitted."""
    return _NAME.fullmatch(name) is not None
