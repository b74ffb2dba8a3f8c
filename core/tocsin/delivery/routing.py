"""Which destinations an event concerns, and turning events into deliveries exactly once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from sqlalchemy import Connection

from tocsin.delivery.queue import offer
from tocsin.events import mark_routed, unrouted
from tocsin.hookspecs import Channel
from tocsin.model import Event, EventType, Severity


@dataclass(frozen=True, slots=True)
class Route:
    """What one destination wants to hear of."""

    destination: str
    events: frozenset[EventType]
    min_severity: Severity

    @classmethod
    def of(cls, destination: str, settings: Channel.Settings) -> Self:
        """Return the route to a destination, be its plugin there or not."""
        return cls(destination, frozenset(settings.events), settings.min_severity)

    def takes(self, event: Event) -> bool:
        """Return whether the event goes there."""
        if event.event_type not in self.events:
            return False
        if event.event_type is not EventType.INCIDENT_ALERT:
            return True
        return Severity(event.data["severity"]).rank >= self.min_severity.rank


def route(connection: Connection, routes: Sequence[Route], most: int, now: datetime) -> int:
    """Turn the oldest unrouted events into deliveries, and return how many events those were."""
    waiting = unrouted(connection, most)
    if waiting:
        wanted = ((event, to.destination) for event in waiting for to in routes if to.takes(event))
        offer(connection, wanted, now)
        mark_routed(connection, waiting)
    return len(waiting)
