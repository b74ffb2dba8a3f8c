"""The outbox: events, written in the transaction of the change that caused them."""

from tocsin.events.bell import Bell, Bells
from tocsin.events.identifiers import new_id
from tocsin.events.outbox import EVENTS, emit, event_of, mark_routed, unrouted

__all__ = ["EVENTS", "Bell", "Bells", "emit", "event_of", "mark_routed", "new_id", "unrouted"]
