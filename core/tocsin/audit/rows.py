"""Reading rows that whoever writes to the database may have filled with anything."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import orjson
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Select,
    Text,
    cast,
    select,
    type_coerce,
)

from tocsin.store.tables import audit

# As they are stored: a moment is a number, and details are text, be it JSON still or not.
_STORED: dict[str, ColumnElement[Any]] = {
    "at": type_coerce(audit.c.at, BigInteger).label("at"),
    "details": cast(audit.c.details, Text).label("details"),
}


def select_rows() -> Select[Any]:
    """Return a query for entries as they are stored, whose reading cannot fail on one of them."""
    return select(*(_STORED.get(column.name, column) for column in audit.c))


def parse_details(text: str) -> Any:
    """Return what the details of a row say.

    Raises ValueError or TypeError for what `record` cannot have written.
    """
    details = orjson.loads(text)
    # orjson reads deeper than it writes, and so deep that a seal over it may overflow the stack
    orjson.dumps(details)
    return details


@contextmanager
def allow_any_text(connection: Connection) -> Iterator[None]:
    """Have SQLite, whose texts may hold any bytes, give back what is not UTF-8 as surrogates."""
    driver = connection.connection.driver_connection
    if not isinstance(driver, sqlite3.Connection):
        yield
        return
    before, driver.text_factory = driver.text_factory, _decode
    try:
        yield
    finally:
        driver.text_factory = before


def _decode(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")
