"""What the Local API is asked about an entity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from tocsin import Entity, EntityKind, Window
from tocsin_connectors.siem.crowdsec.times import format_duration
from tocsin_connectors.siem.records import normalize_address

ENTITY_KINDS = frozenset({EntityKind.IP, EntityKind.USER})
"""What it can be asked about."""
CLOCK_TOLERANCE = timedelta(seconds=2)
"""More than the field `Date`, in whole seconds, leaves open."""
MAX_LEAD_TIME = timedelta(days=1)
"""So long before an event may the first one of its alert have been: slow guessing takes hours."""


def build_queries(entity: Entity) -> Iterator[Mapping[str, str]]:
    """Yield the filters of GET /alerts that find alerts of an entity; none for most kinds.

    `value` is that of the alert's source, whatever its scope. `ip` is for the decisions that cover
    an address, those of its range as well; blocklists, of which each update is one large alert,
    are left out (https://crowdsecurity.github.io/api_doc/lapi/).
    """
    if entity.kind is EntityKind.IP and (value := normalize_address(entity.value)):
        yield {"value": value}
        yield {"ip": value, "include_capi": "false"}
    elif entity.kind is EntityKind.USER and entity.value:
        yield {"value": entity.value}


def build_time_filters(window: Window, now: datetime) -> Mapping[str, str]:
    """Return the filters, as ages, for what began in time to have events in a window."""
    since = max(now - window.start + MAX_LEAD_TIME + CLOCK_TOLERANCE, timedelta(0))
    until = max(now - window.end - CLOCK_TOLERANCE, timedelta(0))
    return {"since": format_duration(since), "until": format_duration(until)}
