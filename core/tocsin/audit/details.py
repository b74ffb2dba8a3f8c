"""Making the details of an entry come back from both databases as they went in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tocsin.model import Json
from tocsin.store.text import clean_text

MAX_TEXT = 2_000  # characters of one text

_LEAST_INTEGER, _MOST_INTEGER = -(2**63), 2**64 - 1  # which orjson reads as integers


def clean_details(details: Mapping[str, Json]) -> dict[str, Any]:
    """Return the details with every text bounded and every number spelt in one way only."""
    return {clean_text(key, MAX_TEXT): _clean_detail(value) for key, value in details.items()}


def _clean_detail(value: Json) -> Json:
    match value:
        case str():
            return clean_text(value, MAX_TEXT)
        case float():
            return _clean_number(value)
        case Mapping():
            return clean_details(value)
        case list() | tuple():
            return [_clean_detail(item) for item in value]
        case _:
            return value


def _clean_number(value: float) -> float:
    # JSONB has no exponents and no -0.0: it gives 1e16 back as an integer, SQLite does not
    is_integer = value.is_integer() and _LEAST_INTEGER <= value <= _MOST_INTEGER
    return int(value) if is_integer else value
