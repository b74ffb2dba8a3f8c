"""Form for an emergency stop, with its length and its reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tocsin.web.console.forms import Form, to_utc

STOP_LENGTHS: Mapping[str, str] = {
    "PT1H": "1 hour",
    "PT4H": "4 hours",
    "PT24H": "24 hours",
    "": "until you enable it",
}
"""Lengths of a stop that a form offers, with their labels."""


def read_stop(form: Form) -> Mapping[str, Any]:
    """Return the stop in a form: until the given time, else for the chosen length."""
    until = form.text("until")
    stop: dict[str, Any] = {"enabled": False, **form.given("reason")}
    if until:
        stop["until"] = to_utc(until)
    elif length := form.text("duration"):
        stop["duration"] = length
    return stop
