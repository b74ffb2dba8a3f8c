"""How one entry is linked to the next: by an HMAC over its content and the seal before it."""

from __future__ import annotations

import hmac
import json
from typing import Any

from sqlalchemy import RowMapping

from tocsin.audit.rows import parse_details

SEAL = "audit"
"""What the key of the seals is derived for."""
GENESIS = "0" * 64
"""Stands before the first seal."""


def compute_seal(key: bytes, before: str, row: RowMapping, position: int) -> str:
    """Return the seal of `row` at `position`, where `before` is the seal before it.

    Every row has one, so that none keeps those after it from being sealed.
    """
    content = {str(name): value for name, value in row.items() if name != "seal"}
    content |= _normalize_details(row["details"]) | {"position": position}
    # Sorted, since JSONB keeps an order of its own; not by orjson, whose versions differ in how
    # they spell a float.
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), default=_encode_bytes)
    return hmac.digest(key, (before + canonical).encode("utf-8", "surrogatepass"), "sha256").hex()


def _normalize_details(text: str) -> dict[str, Any]:
    try:
        return {"details": parse_details(text)}
    except (TypeError, ValueError):  # marked, since a text may be the details of another row
        return {"details": text, "unreadable": True}


def _encode_bytes(value: bytes) -> dict[str, str]:
    # only SQLite has bytes where text belongs
    return {"bytes": value.hex()}
