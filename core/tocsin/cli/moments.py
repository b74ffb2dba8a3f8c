"""Moments as they are given on the command line: as such, or as a time back from now."""

from __future__ import annotations

from datetime import datetime, timedelta

from pydantic import TypeAdapter, ValidationError

from tocsin.errors import OperatorError
from tocsin.fields import Duration
from tocsin.store.tables import EPOCH

_Duration: TypeAdapter[timedelta] = TypeAdapter(Duration)


def parse_moment(option: str, text: str, now: datetime) -> datetime:
    """Return the moment that an option names; OperatorError where it names none."""
    try:
        return max(now - _Duration.validate_python(text), EPOCH)
    except (ValidationError, OverflowError):
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None or moment < EPOCH:
        raise OperatorError(
            f"{option}: found {text!r}; give a time back from now, such as 24h or 7d, or a moment "
            "with its time zone, such as 2026-11-21T05:33:01Z"
        )
    return moment
