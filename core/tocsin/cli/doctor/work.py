"""Examination of the work: anomalies, delays, roles, retention and destinations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import Connection

from tocsin import accounting
from tocsin.cli.doctor.findings import Area
from tocsin.cli.emergency_stops import describe_remedy
from tocsin.clock import isoformat
from tocsin.delivery import (
    ChannelFactory,
    DeliveryBacklog,
    Destination,
    DestinationState,
    StopReason,
    find_routing_hold,
    load_destinations,
    read_backlogs,
)
from tocsin.errors import OperatorError
from tocsin.fields import PluginSettings
from tocsin.incidents import load_read_until, load_statuses
from tocsin.knowledge import count_unindexed
from tocsin.registry import Configuration, RetentionSettings
from tocsin.retention import (
    OVERDUE,
    find_oldest,
    find_partition_problems,
    list_latest_removals,
)
from tocsin.settings import NodeRole
from tocsin.stops import StopKind, load_stops
from tocsin.store import find_degraded_plugins, find_node_roles, has_partitions

PERIOD = timedelta(hours=24)
"""The period of the account."""
_LATE = timedelta(hours=1)
_UNINDEXED = 10_000
_SHOWN = 3  # anomalies of one kind


def examine_work(
    connection: Connection, area: Area, configuration: Configuration, now: datetime
) -> None:
    """Find anomalies, emergency stops, degraded plugins and delays."""
    proof = accounting.report_period(connection, accounting.Period(now - PERIOD, now), now)
    kinds = Counter(anomaly["kind"] for anomaly in proof["unaccounted"])
    for kind, count in kinds.items():
        several = [each for each in proof["unaccounted"] if each["kind"] == kind][:_SHOWN]
        more = f", and {count - _SHOWN} more" if count > _SHOWN else ""
        found = "; ".join(f"{each['what']}: {each['detail']}" for each in several)
        area.fail(
            f"{kind}: {found}{more}",
            "run `tocsin prove`; see docs/operators/accounting.md#anomalies",
        )
    hold = find_routing_hold(connection)
    if hold is not None and connection.dialect.name != "sqlite":  # where the start applies the file
        found, _, remedy = hold.partition("; ")
        area.fail(found, remedy)
    for kind in StopKind:
        for name, stop in load_stops(connection, kind, now).items():
            area.warn(f"{kind}s.{name}: disabled {stop.describe()}", describe_remedy(kind, name))
    until, statuses = load_read_until(connection), load_statuses(connection, now)
    for provider in configuration.providers:
        status = statuses.get(provider.name)
        if status is not None and status["state"] == "failing":
            area.fail(
                f"providers.{provider.name}: failed reads in a row: {status['failures']} "
                f"({status['outcome']}: {status['reason']})",
                "see docs/operators/sync.md#failed-reads",
            )
        _examine_provider(area, provider.name, until.get(provider.name), now)
    for path, reason in find_degraded_plugins(connection, now).items():
        area.warn(
            f"{path} is degraded: {reason}",
            "to see quarantined records, run `tocsin quarantine`; report a defect of the plugin to "
            "its author; see docs/operators/diagnose.md#degraded-plugins",
        )
    unindexed = count_unindexed(connection)
    found = f"incident changes not yet in the search index: {unindexed}"
    if unindexed > _UNINDEXED:
        area.warn(
            found, "check that a node with the role `investigate` is running, and read its log"
        )
    else:
        area.note(found)


def _examine_provider(area: Area, name: str, until: datetime | None, now: datetime) -> None:
    if until is None:  # never read, or a file, which has no time
        return
    lag = max(now - until, timedelta(0))
    found = f"providers.{name}: {lag // timedelta(seconds=1)} s behind the current time"
    if lag > _LATE:
        area.warn(
            found,
            f"to see the cause, run `tocsin providers` and `tocsin coverage --provider {name}`",
        )
    else:
        area.note(found)


def examine_retention(
    connection: Connection, area: Area, settings: RetentionSettings, now: datetime
) -> None:
    """Find records that are much older than their retention, and problems with partitions."""
    removals = list_latest_removals(settings, has_months=has_partitions(connection))
    for kind, moment in find_oldest(connection).items():
        keep = settings.limits.get(kind)
        if keep is None or moment is None:
            continue
        found = (
            f"{kind}: the oldest record is from {isoformat(moment)}; days to keep records: "
            f"{keep.days}"
        )
        if now - moment > removals[kind] + OVERDUE:
            area.warn(
                found, "see docs/operators/alerts.md#tocsinretentionbehind for possible causes"
            )
        else:
            area.note(found)
    if not settings.limits:
        area.note("no retention limit is set")
    for found, remedy in find_partition_problems(connection, now):
        area.warn(found, remedy)


def examine_roles(connection: Connection, area: Area, now: datetime) -> None:
    """Find the roles that no running node has."""
    nodes = find_node_roles(connection, now)
    if not nodes:
        area.warn("no node is running", "start `tocsin serve`")
        return
    missing = [
        role.value for role in NodeRole if not any(role in roles for roles in nodes.values())
    ]
    for role in missing:
        area.fail(
            f"no running node has the role `{role}`",
            f"add `{role}` to TOCSIN_ROLES on a node, or start a node with this role",
        )
    if not missing:
        area.note(f"these running nodes together have all roles: {', '.join(sorted(nodes))}")


def examine_destinations(
    connection: Connection, area: Area, channels: ChannelFactory, now: datetime
) -> Sequence[tuple[str, PluginSettings]]:
    """Find destinations that cannot receive events; return the settings of the others."""
    usable: list[tuple[str, PluginSettings]] = []
    backlogs, _ = read_backlogs(connection, now)
    waiting = {backlog.destination: backlog for backlog in backlogs}
    for destination in load_destinations(connection):
        _examine_state(area, destination, waiting.get(destination.name), now)
        if not destination.is_served:
            continue
        try:
            _, settings = channels.settle(destination)
        except OperatorError as error:
            area.fail(
                f"destinations.{destination.name}: {error}",
                "enable its plugin, or correct its settings",
            )
        else:
            usable.append((f"destinations.{destination.name}", settings))
    if not usable:
        area.warn("no destination can receive events", "see docs/operators/destinations.md")
    else:
        area.note(f"usable destinations: {len(usable)}")
    return usable


def _examine_state(
    area: Area, destination: Destination, backlog: DeliveryBacklog | None, now: datetime
) -> None:
    name, oldest = f"destinations.{destination.name}", backlog.oldest if backlog else None
    if destination.state is DestinationState.PAUSED:
        remedy = f"run `tocsin destinations test {destination.name}`"
        area.fail(f"{name}: paused after repeated failures", remedy)
    elif destination.state is DestinationState.DISABLED and oldest is not None:
        report = area.warn if destination.reason is StopReason.MANUAL else area.fail
        report(
            f"{name}: disabled ({destination.reason}), but deliveries are waiting",
            f"for the reason, run `tocsin destinations show {destination.name}`; see "
            "docs/operators/destinations.md#circuit-breaker",
        )
    elif backlog is not None and (on_hold := backlog.depth["on_hold"]):
        area.fail(
            f"{name}: deliveries on hold: {on_hold}",
            "to see the reason, run `tocsin deliveries list --state on_hold --destination "
            f"{destination.name}`",
        )
    elif oldest is not None and now - oldest > _LATE:
        minutes = (now - oldest) // timedelta(minutes=1)
        area.warn(
            f"{name}: the oldest delivery has been waiting for {minutes} min",
            f"run `tocsin deliveries list --destination {destination.name}`",
        )
