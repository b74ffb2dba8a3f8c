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
    """Return what a sign-in brought, with its end by our own clock."""
    match json:
        case {"token": str(token), "expire": str(expire)}:
            try:
                return Grant(f"Bearer {token}", parse_time(expire) - skew)
            except ValueError as error:
                raise Broken(f"POST /v1/watchers/login: {error}") from None
    raise Broken("POST /v1/watchers/login answered without a token and its end")


def parse_alerts(answer: ApiResponse) -> Sequence[dict[str, Any]]:
    """Return the alerts of an answer; `null` means that there are none, no body that it broke."""
    if answer.json is None and answer.headers.get("Content-Length") != "0":
        return ()
    alerts = answer.json
    if not isinstance(alerts, list) or not all(isinstance(alert, dict) for alert in alerts):
        raise Broken(f"GET {ALERTS} answered something else than a list of alerts")
    return alerts


def is_in_window(alert: dict[str, Any], window: Window) -> bool:
    """Return whether an alert is one of the window; one that does not say is not left out."""
    moment = parse_creation_time(alert)
    return moment is None or moment in window


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
