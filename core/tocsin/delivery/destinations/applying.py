"""Making the destinations those of `plugins.toml`, and of the plugins that hear of events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection

from tocsin.delivery.destinations.changing import Written, change, create, plain, resume
from tocsin.delivery.destinations.observers import PREFIX
from tocsin.delivery.destinations.records import (
    Destination,
    Reason,
    State,
    load_destinations,
)
from tocsin.registry import Configuration, Known, ManagedBy, Step, plan
from tocsin.store import exclude_others

SECTION = "destinations"


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


def apply_destinations(
    connection: Connection, wanted: Sequence[Written], by: str, now: datetime
) -> list[Step]:
    """Make the destinations those of a file, and return what that took, nothing if they were.

    OperatorError where a name is taken by a destination that was made over HTTP.
    """
    exclude_others(connection, "applying a file")
    known = {it.name: it for it in load_destinations(connection, lock=True)}
    steps = plan_destinations(list(known.values()), wanted)
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


def plan_destinations(known: Sequence[Destination], wanted: Sequence[Written]) -> list[Step]:
    """Return what would make the known destinations those of a file; raises OperatorError."""
    return plan(
        SECTION,
        {
            it.name: Known(it.managed_by, it.reason is Reason.REMOVED, (it.plugin, it.settings))
            for it in known
        },
        {it.name: (it.plugin, plain(it.settings)) for it in wanted},
    )
