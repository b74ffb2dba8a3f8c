"""The plan of a batch of events: where each one goes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tocsin import tracing
from tocsin.delivery.queue.states import ClaimedDelivery
from tocsin.events import read_traceparent
from tocsin.model import Event


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
