"""Plan and application of `plugins.toml` to the database."""

from __future__ import annotations

from datetime import datetime

import structlog
from sqlalchemy import Connection

from tocsin.delivery import (
    apply_destinations,
    list_configured_destinations,
    load_destinations,
    plan_destinations,
    record_application,
    requeue_on_hold,
)
from tocsin.events import retry_routing
from tocsin.registry import Configuration, PlannedChange
from tocsin.schedules import apply_schedules, plan_schedules
from tocsin.store import Database

_log = structlog.get_logger()


def plan_file(connection: Connection, configuration: Configuration) -> list[PlannedChange]:
    """Plan the changes of applying the file; raises OperatorError if a name is taken."""
    destinations = plan_destinations(
        load_destinations(connection), list_configured_destinations(configuration)
    )
    return destinations + plan_schedules(connection, configuration.schedules)


def apply_file(
    connection: Connection, configuration: Configuration, by: str, now: datetime
) -> list[PlannedChange]:
    """Apply the file and return the changes; raises OperatorError.

    Events are routed as soon as a file has been applied for the first time.
    """
    destinations = apply_destinations(
        connection, list_configured_destinations(configuration), by, now
    )
    schedules = apply_schedules(connection, configuration.schedules, by, now)
    record_application(connection)
    return destinations + schedules


async def settle_configuration(
    configuration: Configuration, database: Database, now: datetime, *, alone: bool
) -> list[str]:
    """Apply the file on a single node; return its drift from the database on a shared one.

    Deliveries on hold are requeued, because templates and plugins may have been fixed. Events on
    hold are routed again.
    """
    await database.write(retry_routing)
    await database.write(requeue_on_hold, now)
    if alone:
        await database.write(apply_file, configuration, "file", now)
        return []
    if drift := await find_configuration_drift(configuration, database):
        _log.warning(
            "configuration drift",
            drift=drift,
            advice="run `tocsin apply` to apply plugins.toml, or reload the node if that was done",
        )
    return drift


async def find_configuration_drift(configuration: Configuration, database: Database) -> list[str]:
    """Return the differences between the file and the database."""
    steps = await database.read(plan_file, configuration)
    return [f"{step.section}.{step.name}: {step.action}" for step in steps]
