"""Moments that callers name."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

from tocsin.store.tables import EPOCH

_LATEST = datetime(9999, 1, 1, tzinfo=UTC)


def _parse_timestamp(value: object) -> datetime:
    try:
        moment = datetime.fromisoformat(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ValueError("give a moment such as 2026-11-21T05:33:01Z") from None
    if moment.tzinfo is None:
        raise ValueError("say in which time zone, such as with a Z for UTC")
    return min(max(moment, EPOCH), _LATEST)


Timestamp = Annotated[
    datetime,
    BeforeValidator(_parse_timestamp),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
"""A moment in ISO 8601, with its time zone; none lies before 1970 or after 9998."""
