"""Requests to the CrowdSec Local API, and its responses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from tocsin import ApiResponse, Broken, Entity, EntityKind, Grant, Window
from tocsin_connectors.siem.crowdsec.go_time import format_duration, parse_time
from tocsin_connectors.siem.crowdsec.mapping import parse_creation_time
from tocsin_connectors.siem.records import normalize_address

ALERTS = "/v1/alerts"


def parse_grant(json: Any, skew: timedelta) -> Grant:
    """Return the grant in a sign-in response, with its expiry by the local clock."""
    match json:
        case {"token": str(token), "expire": str(expire)}:
            try:
                return Grant(f"Bearer {token}", parse_time(expire) - skew)
            except ValueError as error:
                raise Broken(f"POST /v1/watchers/login: {error}") from None
    raise Broken("POST /v1/watchers/login returned a response without `token` and `expire`")


def parse_alerts(answer: ApiResponse) -> Sequence[dict[str, Any]]:
    """Return the alerts of a response.

    `null` means that there are none; an empty body means that the response broke off.
    """
    if answer.json is None and answer.headers.get("Content-Length") != "0":
        return ()
    alerts = answer.json
    if not isinstance(alerts, list) or not all(isinstance(alert, dict) for alert in alerts):
        raise Broken(f"GET {ALERTS} did not return a list of alerts")
    return alerts


def is_in_window(alert: dict[str, Any], window: Window) -> bool:
    """Return whether an alert was created in the window. An alert without a time counts."""
    moment = parse_creation_time(alert)
    return moment is None or moment in window


ENTITY_KINDS = frozenset({EntityKind.IP, EntityKind.USER})
"""Kinds of entity that the Local API can search for."""
CLOCK_TOLERANCE = timedelta(seconds=2)
"""Tolerance for the header `Date`, which has whole seconds."""
MAX_LEAD_TIME = timedelta(days=1)
"""Maximum time between the first event of an alert and later ones: slow attacks take hours."""


def build_queries(entity: Entity) -> Iterator[Mapping[str, str]]:
    """Yield the filters of GET /alerts that match an entity, none for unsupported kinds.

    `value` is the value of the alert's source, whatever its scope. `ip` matches decisions that
    cover an address, including ranges. Blocklists, each update of which is one large alert, are
    excluded (https://crowdsecurity.github.io/api_doc/lapi/).
    """
    if entity.kind is EntityKind.IP and (value := normalize_address(entity.value)):
        yield {"value": value}
        yield {"ip": value, "include_capi": "false"}
    elif entity.kind is EntityKind.USER and entity.value:
        yield {"value": entity.value}


def build_time_filters(window: Window, now: datetime) -> Mapping[str, str]:
    """Return age filters for alerts that may have events in a window."""
    since = max(now - window.start + MAX_LEAD_TIME + CLOCK_TOLERANCE, timedelta(0))
    until = max(now - window.end - CLOCK_TOLERANCE, timedelta(0))
    return {"since": format_duration(since), "until": format_duration(until)}
