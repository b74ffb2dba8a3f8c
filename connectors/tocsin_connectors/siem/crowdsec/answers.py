"""What the Local API answers, taken apart."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from tocsin import ApiResponse, Broken, Grant, Window
from tocsin_connectors.siem.crowdsec.alerts import parse_creation_time
from tocsin_connectors.siem.crowdsec.times import parse_time

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
