"""IRIS's responses; 400 can mean an invalid request, a missing permission or its own failure."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from tocsin import Broken, Json, Misconfigured, PluginFailure, Refused

_TRANSIENT = (b"OperationalError", b"QueuePool limit", b"has been rolled back")
"""SQLAlchemy messages for an unavailable or busy database, which IRIS passes on."""
_NOBODY = -1


def unwrap_data(answer: Json, what: str) -> Json:
    """Return the `data` of a response. Raises `Broken` unless it was successful."""
    match answer:
        case {"status": "success", "data": data}:
            return data
    raise Broken(f"IRIS did not report success for {what}")


def classify_refusal(refused: Refused) -> PluginFailure:
    """Classify a rejected request: missing permission, failure in IRIS or invalid request."""
    if b"not entitled" in refused.response:
        return Misconfigured(str(refused), status=refused.status, response=refused.response)
    if any(phrase in refused.response for phrase in _TRANSIENT):
        return Broken(str(refused))
    return refused


def is_missing(refused: Refused) -> bool:
    """Return whether the alert does not exist or is not visible to the user."""
    return refused.status == HTTPStatus.NOT_FOUND or b"Alert not found" in refused.response


def is_of_other_format(refused: Refused) -> bool:
    """Return whether a value does not match the regular expression of its IOC type."""
    return b"expected format" in refused.response


def get_alert_id(alert: Json) -> str:
    """Return the ID of an alert. Raises `Broken` if it has none."""
    match alert:
        case {"alert_id": int(number)}:
            return str(number)
    raise Broken("IRIS returned a response without an alert_id")


def get_status(alert: Mapping[str, Any]) -> str:
    """Return the name of an alert's status in lowercase. Raises `Broken` if it has none."""
    match alert:
        case {"status": {"status_name": str(name)}}:
            return name.casefold()
    raise Broken("IRIS returned an alert without a status")


def keep_owner(alert: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the change that keeps an alert without an owner; otherwise, IRIS assigns one."""
    return {"alert_owner_id": _NOBODY} if alert.get("alert_owner_id") is None else {}
