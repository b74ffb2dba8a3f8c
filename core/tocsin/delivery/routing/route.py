"""Routes: which events go to which destination."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import structlog
from pydantic import ValidationError
from sqlalchemy import Connection, or_, select

from tocsin.conditions import Condition
from tocsin.delivery.destinations.repository import (
    Destination,
    DestinationState,
    StopReason,
    load_destination,
)
from tocsin.hookspecs import Channel
from tocsin.model import Event, EventType, Severity
from tocsin.registry import ManagedBy
from tocsin.sandbox import AllowanceExhausted
from tocsin.store.tables import destinations

_ROUTED = (
    select(destinations.c.name, destinations.c.revision)
    .where(
        destinations.c.state != DestinationState.DELETED,
        or_(destinations.c.reason.is_(None), destinations.c.reason != StopReason.REMOVED),
    )
    .order_by(destinations.c.name)
)
_log = structlog.get_logger()


@dataclass(frozen=True)
class Route:
    """Routing settings of one destination."""

    destination: str
    events: frozenset[EventType] = frozenset(EventType)
    min_severity: Severity = Severity.INFORMATIONAL
    providers: frozenset[str] = frozenset()
    when: str | None = None

    @classmethod
    def of(cls, destination: Destination) -> Self:
        """Return the route to a destination, even if its plugin is not available.

        Observer plugins receive all events, and so do destinations whose settings cannot be read.
        """
        if destination.managed_by is ManagedBy.PLUGIN:
            return cls(destination.name)
        model = Channel.Settings
        routing = {"plugin", "events", "min_severity", "providers", "when"}
        known = {name: value for name, value in destination.settings.items() if name in routing}
        try:
            settings = model.model_validate({"plugin": destination.plugin, **known})
        except ValidationError as error:
            facts = {"destination": destination.name, "reason": str(error)}
            _log.warning("invalid routing settings; delivering all events", **facts)
            return cls(destination.name)
        return cls(
            destination.name,
            frozenset(settings.events),
            settings.min_severity,
            frozenset(settings.providers),
            settings.when,
        )

    @cached_property
    def _severities(self) -> frozenset[str]:
        return frozenset(
            severity for severity in Severity if severity.rank >= self.min_severity.rank
        )

    @cached_property
    def _condition(self) -> Condition | None:
        return None if self.when is None else Condition(self.when)

    def takes(self, event: Event) -> bool:
        """Return whether the event goes to the destination; raises `AllowanceExhausted`."""
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
        """Return whether the condition holds; the event passes if it cannot be evaluated."""
        try:
            return condition.holds(event.variables())
        except AllowanceExhausted:
            raise
        except Exception as error:  # noqa: BLE001 - operators' expressions may raise anything
            facts = {"destination": self.destination, "event_id": event.id, "reason": str(error)}
            _log.warning("condition cannot be evaluated; delivering the event", **facts)
            return True


class Routes:
    """Current routes, cached until destinations change."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, Route]] = {}

    def current(self, connection: Connection, revisions: Sequence[tuple[str, int]]) -> list[Route]:
        """Return the route to each of these destinations."""
        routes = []
        for name, revision in revisions:
            known = self._known.get(name)
            if known is None or known[0] != revision:
                destination = load_destination(connection, name)
                assert destination is not None  # noqa: S101 - rows of destinations are kept
                known = self._known[name] = revision, Route.of(destination)
            routes.append(known[1])
        return routes


def load_revisions(connection: Connection) -> Sequence[tuple[str, int]]:
    """Return the destinations that receive new events, with their revisions."""
    return [(name, revision) for name, revision in connection.execute(_ROUTED)]
