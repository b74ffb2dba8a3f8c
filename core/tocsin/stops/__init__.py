"""Emergency stops of destinations and providers, by a person, with an optional end."""

from tocsin.stops.metrics import StopGauges
from tocsin.stops.records import (
    MAX_DURATION,
    NOBODY,
    TOPIC,
    EmergencyStop,
    StopKind,
    StopOrder,
    begin_stop,
    end_due_stops,
    end_stop,
    find_stop,
    list_stops,
    load_stops,
)

__all__ = [
    "MAX_DURATION",
    "NOBODY",
    "TOPIC",
    "EmergencyStop",
    "StopGauges",
    "StopKind",
    "StopOrder",
    "begin_stop",
    "end_due_stops",
    "end_stop",
    "find_stop",
    "list_stops",
    "load_stops",
]
