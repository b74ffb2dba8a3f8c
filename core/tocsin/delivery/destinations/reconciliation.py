"""Reconciliation of stored destinations with `plugins.toml`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection

from tocsin.delivery.destinations.channels import OBSERVER_PREFIX
from tocsin.delivery.destinations.lifecycle import (
    DestinationSpec,
    change_destination,
    create_destination,
    disable_destination,
    resume_destination,
    to_json_settings,
)
from tocsin.delivery.destinations.repository import (
    Destination,
    DestinationState,
    StopReason,
    load_destinations,
)
from tocsin.registry import Configuration, ManagedBy, PlannedChange, StoredObject, plan_changes
from tocsin.stops import StopKind, load_stops
from tocsin.store import lock_exclusively

SECTION = "destinations"


def list_configured_destinations(configuration: Configuration) -> list[DestinationSpec]:
    """Return the destinations that a configuration defines, observer plugins included."""
    listed = [
        DestinationSpec(
            destination.name, str(destination.table["plugin"]), destination.table, ManagedBy.FILE
        )
        for destination in configuration.destinations
    ]
    heard = [
        DestinationSpec(OBSERVER_PREFIX + plugin, plugin, _describe_hooks(hooks), ManagedBy.PLUGIN)
        for plugin, hooks in configuration.observers.items()
    ]
    return listed + heard


def _describe_hooks(hooks: Iterable[str]) -> dict[str, list[str]]:
    """Return the settings of an observer: its hooks, unless `tocsin_event` is the only one."""
    return {} if list(hooks) == ["tocsin_event"] else {"hooks": sorted(hooks)}


def apply_destinations(
    connection: Connection, wanted: Sequence[DestinationSpec], by: str, now: datetime
) -> list[PlannedChange]:
    """Make the stored destinations match a file, and return the changes made.

    Raises OperatorError if a destination created over HTTP has the same name as one in the file.
    """
    lock_exclusively(connection, "applying a file")
    known = {
        destination.name: destination for destination in load_destinations(connection, lock=True)
    }
    steps = plan_destinations(list(known.values()), wanted)
    stops = load_stops(connection, StopKind.DESTINATION, now)
    by_name = {written.name: written for written in wanted}
    for step in steps:
        if step.action == "create":
            create_destination(connection, by_name[step.name], by, now)
        elif step.action == "disable":
            stopped = replace(
                known[step.name], state=DestinationState.DISABLED, reason=StopReason.REMOVED
            )
            change_destination(connection, replace(stopped, detail=None), now)
        else:
            written = by_name[step.name]
            settings = to_json_settings(written.settings)
            changed = replace(known[step.name], plugin=written.plugin, settings=settings)
            # A file does not undo what somebody has stopped
            if (stop := stops.get(step.name)) is not None:
                disable_destination(connection, changed, now, stop.describe())
            elif changed.reason is StopReason.MANUAL:
                change_destination(connection, changed, now)
            else:
                resume_destination(connection, changed, now)
    return steps


def plan_destinations(
    known: Sequence[Destination], wanted: Sequence[DestinationSpec]
) -> list[PlannedChange]:
    """Return the changes that would make the known destinations match a file.

    Raises OperatorError if a destination created over HTTP has the same name as one in the file.
    """
    return plan_changes(
        SECTION,
        {
            destination.name: StoredObject(
                destination.managed_by,
                destination.reason is StopReason.REMOVED,
                (destination.plugin, destination.settings),
            )
            for destination in known
        },
        {
            destination.name: (destination.plugin, to_json_settings(destination.settings))
            for destination in wanted
        },
    )
