"""The outbox: events, written in the transaction of the change that caused them."""

from tocsin.events.bell import Bell
from tocsin.events.identifiers import new_id
from tocsin.events.outbox import emit, event_of, mark_routed, unrouted

__all__ = ["Bell", "emit", "event_of", "mark_routed", "new_id", "unrouted"]
