"""JSON as the database keeps it."""

from __future__ import annotations

from typing import Any

import orjson


def dump_json(value: Any) -> str:
    """Return `value` as JSON text."""
    return orjson.dumps(value).decode()


def load_json(text: str | bytes) -> Any:
    """Return what the JSON in `text` says."""
    return orjson.loads(text)
