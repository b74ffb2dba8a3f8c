"""How one entry is linked to the next: by an HMAC over its content and the seal before it."""

from __future__ import annotations

import hmac
import json
from typing import Any

import orjson
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    RowMapping,
    Select,
    Text,
    cast,
    select,
    type_coerce,
)

from tocsin.store.tables import audit

SEAL = "audit"
"""What the key of the seals is derived for."""
GENESIS = "0" * 64
"""Stands before the first seal."""

# As they are stored: a moment is a number, and details are text, be it JSON still or not.
_STORED: dict[str, ColumnElement[Any]] = {
    "at": type_coerce(audit.c.at, BigInteger).label("at"),
    "details": cast(audit.c.details, Text).label("details"),
}


def select_rows() -> Select[Any]:
    """Return a query for entries in the form that `seal_of` takes."""
    return select(*(_STORED.get(column.name, column) for column in audit.c))


def seal_of(key: bytes, before: str, row: RowMapping, position: int) -> str:
    """Return the seal of `row` at `position`, where `before` is the seal before it.

    Raises TypeError, ValueError or RecursionError for a row that `record` cannot have written.
    """
    content = {str(name): value for name, value in row.items() if name != "seal"}
    content |= {"details": orjson.loads(row["details"]), "position": position}
    # Sorted, since JSONB keeps an order of its own; not by orjson, whose versions differ in how
    # they spell a float.
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hmac.digest(key, (before + canonical).encode(), "sha256").hex()
