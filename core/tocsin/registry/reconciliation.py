"""Reconciliation of stored objects with `plugins.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from tocsin.errors import OperatorError


class ManagedBy(StrEnum):
    """Where an object can be changed."""

    FILE = "file"
    API = "api"
    PLUGIN = "plugin"


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object of the database, as far as a plan has to know it."""

    managed_by: ManagedBy
    is_removed: bool
    """Whether it was disabled since the file names it no more."""
    content: object
    """Equal to what the file says where nothing is to be changed."""


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """What applying a file does to one object: `create`, `change`, `restore`, `disable`."""

    section: str
    name: str
    action: str


def plan_changes(
    section: str, known: Mapping[str, StoredObject], wanted: Mapping[str, object]
) -> list[PlannedChange]:
    """Return what would make the known objects of a section those of a file, by name.

    OperatorError where a name is taken by one that was made over HTTP.
    """
    for name, it in known.items():
        if it.managed_by is ManagedBy.API and name in wanted:
            raise name_taken_error(section, name)
    steps = [
        PlannedChange(section, name, _choose_action(known.get(name), it))
        for name, it in wanted.items()
    ]
    steps += [
        PlannedChange(section, name, "disable")
        for name, it in known.items()
        if it.managed_by is not ManagedBy.API and name not in wanted and not it.is_removed
    ]
    return sorted((step for step in steps if step.action), key=lambda step: step.name)


def name_taken_error(section: str, name: str) -> OperatorError:
    """Return the error for a name of the file that something made over HTTP has."""
    return OperatorError(
        f"{section}.{name}: a {section.removesuffix('s')} of this name was made over HTTP; "
        "give it another name in the file, or delete the other"
    )


def _choose_action(known: StoredObject | None, content: object) -> str:
    """Return what makes the known object the wanted one, nothing if it is that."""
    if known is None:
        return "create"
    if known.content != content:
        return "change"
    return "restore" if known.is_removed else ""
