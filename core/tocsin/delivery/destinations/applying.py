"""Making the destinations those of `plugins.toml`, and of the plugins that hear of events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import Connection

from tocsin.delivery.destinations.changing import Written, change, create, plain, resume
from tocsin.delivery.destinations.observers import PREFIX
from tocsin.delivery.destinations.records import (
    Destination,
    ManagedBy,
    Reason,
    State,
    load_destinations,
)
from tocsin.errors import OperatorError
from tocsin.registry import Configuration
from tocsin.store import exclude_others


@dataclass(frozen=True, slots=True)
class Step:
    """What applying a file does to one destination: `create`, `change`, `restore`, `disable`."""

    name: str
    action: str


def written_in(configuration: Configuration) -> list[Written]:
    """Return the destinations that a configuration comes to."""
    listed = [
        Written(it.name, str(it.table["plugin"]), it.table, ManagedBy.FILE)
        for it in configuration.destinations
    ]
    heard = [
        Written(PREFIX + plugin, plugin, {}, ManagedBy.PLUGIN) for plugin in configuration.observers
    ]
    return listed + heard


def apply(connection: Connection, wanted: Sequence[Written], by: str, now: datetime) -> list[Step]:
    """Make the destinations those of a file, and return what that took, nothing if they were.

    OperatorError where a name is taken by a destination that was made over HTTP.
    """
    exclude_others(connection, "applying a file")
    known = {it.name: it for it in load_destinations(connection, lock=True)}
    steps = plan(list(known.values()), wanted)
    by_name = {written.name: written for written in wanted}
    for step in steps:
        if step.action == "create":
            create(connection, by_name[step.name], by, now)
        elif step.action == "disable":
            stopped = replace(known[step.name], state=State.DISABLED, reason=Reason.REMOVED)
            change(connection, replace(stopped, detail=None), now)
        else:
            written = by_name[step.name]
            settings = plain(written.settings)
            changed = replace(known[step.name], plugin=written.plugin, settings=settings)
            resume(connection, changed, now)
    return steps


def plan(known: Sequence[Destination], wanted: Sequence[Written]) -> list[Step]:
    """Return what would make the known destinations those of a file, in the order of their names.

    OperatorError where a name is taken by a destination that was made over HTTP.
    """
    written = {it.name: it for it in wanted}
    existing = {it.name: it for it in known}
    taken = [it.name for it in known if it.managed_by is ManagedBy.API and it.name in written]
    if taken:
        raise OperatorError(
            f"destinations.{taken[0]}: a destination of this name was made over HTTP; give it "
            "another name in the file, or delete the other"
        )
    steps = [Step(name, _action(existing.get(name), it)) for name, it in written.items()]
    steps += [
        Step(it.name, "disable")
        for it in known
        if it.managed_by is not ManagedBy.API
        and it.name not in written
        and it.reason is not Reason.REMOVED
    ]
    return sorted((step for step in steps if step.action), key=lambda step: step.name)


def _action(existing: Destination | None, written: Written) -> str:
    """Return what makes the existing one the written one, nothing if it is that."""
    if existing is None:
        return "create"
    if (existing.plugin, existing.settings) != (written.plugin, plain(written.settings)):
        return "change"
    return "restore" if existing.reason is Reason.REMOVED else ""
