"""Plan and application of `plugins.toml` to the database."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection

from tocsin.delivery import (
    apply_destinations,
    list_configured_destinations,
    load_destinations,
    plan_destinations,
)
from tocsin.registry import Configuration, PlannedChange
from tocsin.schedules import apply_schedules, plan_schedules


def plan_file(connection: Connection, configuration: Configuration) -> list[PlannedChange]:
    """Plan the changes of applying the file; raises OperatorError if a name is taken."""
    destinations = plan_destinations(
        load_destinations(connection), list_configured_destinations(configuration)
    )
    return destinations + plan_schedules(connection, configuration.schedules)


def apply_file(
    connection: Connection, configuration: Configuration, by: str, now: datetime
) -> list[PlannedChange]:
    """Apply the file and return the changes; raises OperatorError."""
    destinations = apply_destinations(
        connection, list_configured_destinations(configuration), by, now
    )
    return destinations + apply_schedules(connection, configuration.schedules, by, now)
