"""Routes of destinations, and the plan of a batch of events: where each one goes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, Self

import structlog
from pydantic import ValidationError
from sqlalchemy import Connection, select

from tocsin import tracing
from tocsin.conditions import Condition
from tocsin.delivery.destinations.channels import OBSERVER_PREFIX
from tocsin.delivery.destinations.repository import (
    Destination,
    load_destination,
    load_revisions,
)
from tocsin.delivery.queue.states import ClaimedDelivery
from tocsin.delivery.routing.suppression import SuppressionRule, load_active_rules
from tocsin.events import list_followed, read_traceparent
from tocsin.hookspecs import Channel
from tocsin.model import ChangeType, Event, EventType, Severity
from tocsin.registry import ManagedBy
from tocsin.sandbox import AllowanceExhausted
from tocsin.store.tables import deliveries

_log = structlog.get_logger()


@dataclass(frozen=True)
class Route:
    """Routing settings of one destination."""

    destination: str
    events: frozenset[EventType] = frozenset(EventType)
    min_severity: Severity = Severity.INFORMATIONAL
    providers: frozenset[str] = frozenset()
    when: str | None = None
    changes: frozenset[ChangeType] = frozenset()
    """The types of changes that the destination follows."""

    @classmethod
    def of(cls, destination: Destination) -> Self:
        """Return the route to a destination, even if its plugin is not available.

        Observer plugins receive the events that they have hooks for. If the settings are invalid,
        the destination receives all events.
        """
        followed = list_followed(destination.settings, destination.managed_by)
        if destination.managed_by is ManagedBy.PLUGIN:
            takes_events = "tocsin_event" in destination.settings.get("hooks", ["tocsin_event"])
            return cls(
                destination.name, frozenset(EventType if takes_events else ()), changes=followed
            )
        model = Channel.Settings
        routing = {"plugin", "events", "min_severity", "providers", "when"}
        known = {name: value for name, value in destination.settings.items() if name in routing}
        try:
            settings = model.model_validate({"plugin": destination.plugin, **known})
        except ValidationError as error:
            facts = {"destination": destination.name, "reason": str(error)}
            _log.warning("invalid routing settings; delivering all events", **facts)
            return cls(destination.name)
        kinds, providers = frozenset(settings.events), frozenset(settings.providers)
        least, when = settings.min_severity, settings.when
        return cls(destination.name, kinds, least, providers, when, followed)

    @cached_property
    def _severities(self) -> frozenset[str]:
        return frozenset(
            severity for severity in Severity if severity.rank >= self.min_severity.rank
        )

    @cached_property
    def _condition(self) -> Condition | None:
        return None if self.when is None else Condition(self.when)

    def takes(self, event: Event) -> bool:
        """Return whether the destination receives the event; raises `AllowanceExhausted`."""
        if isinstance(event.event_type, ChangeType):
            return is_wanted_change(event, self.changes, self.destination, self.providers)
        if event.event_type not in self.events:
            return False
        if event.event_type is EventType.INCIDENT_ALERT and not self._takes_alert(event.data):
            return False
        return self._condition is None or self._fulfils(event, self._condition)

    def _takes_alert(self, data: Any) -> bool:
        if self.providers and data["provider"] not in self.providers:
            return False
        return data["severity"] in self._severities

    def _fulfils(self, event: Event, condition: Condition) -> bool:
        """Return whether the condition is true; if it causes an error, the event passes."""
        try:
            return condition.holds(event.variables())
        except AllowanceExhausted:
            raise
        except Exception as error:  # noqa: BLE001 - operators' expressions may raise anything
            facts = {"destination": self.destination, "event_id": event.id, "reason": str(error)}
            _log.warning("condition cannot be evaluated; delivering the event", **facts)
            return True


@dataclass(frozen=True, slots=True)
class CurrentRoutes:
    """Routes of the destinations that receive events, and suppression rules, as last read."""

    revisions: Sequence[tuple[str, int]]
    routes: Sequence[Route]
    rules: Sequence[SuppressionRule]


class Routes:
    """Current routes, cached until a batch cannot be stored because they have changed.

    Reading them for each batch would require two more queries. The transaction that stores a batch
    checks them anyway.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, Route]] = {}
        self._current: CurrentRoutes | None = None

    def current(self, connection: Connection, now: datetime) -> CurrentRoutes:
        """Return the cached routes, or read them if there are none."""
        if self._current is None:
            revisions = load_revisions(connection)
            routes = self._load(connection, revisions)
            rules = load_active_rules(connection, now)
            self._current = CurrentRoutes(revisions, routes, rules)
        return self._current

    def forget(self) -> None:
        """Clear the cache, so that the next batch reads the routes again."""
        self._current = None

    def _load(self, connection: Connection, revisions: Sequence[tuple[str, int]]) -> list[Route]:
        routes = []
        for name, revision in revisions:
            known = self._known.get(name)
            if known is None or known[0] != revision:
                destination = load_destination(connection, name)
                assert destination is not None  # noqa: S101 - rows of destinations are kept
                known = self._known[name] = revision, Route.of(destination)
            routes.append(known[1])
        return routes


@dataclass(frozen=True, slots=True)
class RoutingResult:
    """How many events were routed, and where their deliveries went."""

    count: int
    """0 only if no events are left or if all of them have to wait for other events."""
    queued: frozenset[str]
    """Destinations for which there may be deliveries to claim."""
    leased: Mapping[str, Sequence[ClaimedDelivery]]
    """Deliveries that were leased to workers of this node, by destination."""
    is_waiting: bool = False
    """Whether events wait for earlier events on related subjects that another node routes."""


@dataclass(slots=True)
class RoutingPlan:
    """Deliveries for the events in a batch, from the oldest until time ran out."""

    routed: list[Event] = field(default_factory=list)
    wanted: list[tuple[Event, str]] = field(default_factory=list)
    on_hold: list[tuple[Event, str, str]] = field(default_factory=list)
    """Deliveries whose filters could not be evaluated, with the reasons."""


def find_offered(connection: Connection, routed: Sequence[Event]) -> frozenset[tuple[str, str]]:
    """Return the events' existing deliveries; observer plugins already have rerouted events."""
    query = select(deliveries.c.event_id, deliveries.c.destination)
    ids = [event.id for event in routed]
    return frozenset(map(tuple, connection.execute(query.where(deliveries.c.event_id.in_(ids)))))


def trace_plan(plan: RoutingPlan, started_ns: int) -> None:
    """Record a tracing span for each routed event."""
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
    """Return whether a destination that follows these types of changes receives this change.

    Destinations receive a schedule's runs as events instead, and do not receive failed runs that a
    person started. Observer plugins receive all changes that they have hooks for.
    """
    if event.event_type not in followed or destination.startswith(OBSERVER_PREFIX):
        return event.event_type in followed
    if event.event_type is ChangeType.INVESTIGATION_FINISHED:
        return event.data["schedule_id"] is None and event.data["error"] is None
    return not providers or event.data["provider"] in providers
