"""JSON as the database keeps it."""

from __future__ import annotations

from typing import Any

import orjson


def dumps(value: Any) -> str:
    """Return `value` as JSON text."""
    return orjson.dumps(value).decode()


def loads(text: str | bytes) -> Any:
    """Return what the JSON in `text` says."""
    return orjson.loads(text)
