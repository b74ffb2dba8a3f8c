"""Event outbox: events are stored in the transaction of the change that causes them."""

from tocsin.events.notifier import Notifier, Notifiers
from tocsin.events.outbox import (
    EVENTS,
    RESTORED,
    SHARDS,
    EventShare,
    UnroutedEvents,
    emit_events,
    find_still_unrouted,
    find_unrouted_before,
    hold_events,
    hold_unrouted_events,
    load_unrouted,
    lock_subjects,
    mark_routed,
    parse_event_row,
    read_traceparent,
    release_restored_events,
    retry_routing,
)
from tocsin.events.payloads import ENVELOPES

__all__ = [
    "ENVELOPES",
    "EVENTS",
    "RESTORED",
    "SHARDS",
    "EventShare",
    "Notifier",
    "Notifiers",
    "UnroutedEvents",
    "emit_events",
    "find_still_unrouted",
    "find_unrouted_before",
    "hold_events",
    "hold_unrouted_events",
    "load_unrouted",
    "lock_subjects",
    "mark_routed",
    "parse_event_row",
    "read_traceparent",
    "release_restored_events",
    "retry_routing",
]
