"""Reconciliation of stored objects with `plugins.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from tocsin.errors import OperatorError


class ManagedBy(StrEnum):
    """Source of an object's configuration."""

    FILE = "file"
    API = "api"
    PLUGIN = "plugin"


@dataclass(frozen=True, slots=True)
class StoredObject:
    """The parts of a stored object that reconciliation needs."""

    managed_by: ManagedBy
    is_removed: bool
    """Whether it was disabled because the file no longer names it."""
    content: object
    """Equal to the file's content if nothing changes."""


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """Change of one object: `create`, `change`, `restore` or `disable`."""

    section: str
    name: str
    action: str


def plan_changes(
    section: str, known: Mapping[str, StoredObject], wanted: Mapping[str, object]
) -> list[PlannedChange]:
    """Return the changes that make the stored objects of a section match a file, by name.

    OperatorError if an object created over HTTP has one of the names.
    """
    for name, stored in known.items():
        if stored.managed_by is ManagedBy.API and name in wanted:
            raise name_taken_error(section, name)
    steps = [
        PlannedChange(section, name, _choose_action(known.get(name), content))
        for name, content in wanted.items()
    ]
    steps += [
        PlannedChange(section, name, "disable")
        for name, stored in known.items()
        if stored.managed_by is not ManagedBy.API and name not in wanted and not stored.is_removed
    ]
    return sorted((step for step in steps if step.action), key=lambda step: step.name)


def name_taken_error(section: str, name: str) -> OperatorError:
    """Return the error for a name that an object created over HTTP has."""
    kind = section.removesuffix("s")
    return OperatorError(
        f"{section}.{name}: a {kind} with this name was created over the API; rename the {kind} in "
        "the file, or delete the other one"
    )


def _choose_action(known: StoredObject | None, content: object) -> str:
    """Return the action for a stored object; empty if it matches."""
    if known is None:
        return "create"
    if known.content != content:
        return "change"
    return "restore" if known.is_removed else ""
