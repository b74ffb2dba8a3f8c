"""The plan of a batch of events: where each one goes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection, select

from tocsin import tracing
from tocsin.delivery.destinations.channels import OBSERVER_PREFIX
from tocsin.delivery.queue.states import ClaimedDelivery
from tocsin.events import read_traceparent
from tocsin.model import ChangeType, Event
from tocsin.store.tables import deliveries


@dataclass(frozen=True, slots=True)
class RoutingResult:
    """Number of events that were routed, and where their deliveries went."""

    count: int
    """Only 0 where nothing is left, unless events have to wait for others."""
    queued: frozenset[str]
    """Destinations that may have deliveries to claim."""
    leased: Mapping[str, Sequence[ClaimedDelivery]]
    """Deliveries that were leased to workers of this node, by destination."""
    is_waiting: bool = False
    """Whether events wait for earlier ones of related subjects, which another node routes."""


@dataclass(slots=True)
class RoutingPlan:
    """Deliveries of the events of a batch, from the oldest up to where time ended."""

    routed: list[Event] = field(default_factory=list)
    wanted: list[tuple[Event, str]] = field(default_factory=list)
    on_hold: list[tuple[Event, str, str]] = field(default_factory=list)
    """Deliveries that could not be decided, with the reason."""


def find_offered(connection: Connection, routed: Sequence[Event]) -> frozenset[tuple[str, str]]:
    """Return the deliveries that exist already: those of rerouted events to observer plugins."""
    query = select(deliveries.c.event_id, deliveries.c.destination)
    ids = [event.id for event in routed]
    return frozenset(map(tuple, connection.execute(query.where(deliveries.c.event_id.in_(ids)))))


def trace_plan(plan: RoutingPlan, started_ns: int) -> None:
    """Record a span for each event that was routed."""
    destinations = Counter(event.id for event, _ in plan.wanted)
    for event in plan.routed:
        facts: tracing.Attributes = {
            "event_id": event.id,
            "destinations": destinations[event.id],
        }
        parent = read_traceparent(event)
        tracing.record_span("event.route", facts, parent=parent, started_ns=started_ns)


def is_wanted_change(
    event: Event, followed: Collection[str], destination: str, providers: Collection[str]
) -> bool:
    """Return whether a change concerns a destination that follows these types.

    Destinations receive the runs of schedules as events, and nothing about failed runs that a
    person started. Observer plugins receive all changes that they have hooks for.
    """
    if event.event_type not in followed or destination.startswith(OBSERVER_PREFIX):
        return event.event_type in followed
    if event.event_type is ChangeType.INVESTIGATION_FINISHED:
        return event.data["schedule_id"] is None and event.data["error"] is None
    return not providers or event.data["provider"] in providers
