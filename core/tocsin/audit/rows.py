"""Audit rows as stored, readable whatever was written to the database."""

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

# As stored: a time is a number, and details are text, valid JSON or not.
_STORED: dict[str, ColumnElement[Any]] = {
    "at": type_coerce(audit.c.at, BigInteger).label("at"),
    "details": cast(audit.c.details, Text).label("details"),
}


def select_rows() -> Select[Any]:
    """Return a query of entries as stored, which cannot fail on a corrupt row."""
    return select(*(_STORED.get(column.name, column) for column in audit.c))


def parse_details(text: str) -> Any:
    """Parse the details of a row.

    Raises ValueError or TypeError for values that `record` cannot have written.
    """
    details = orjson.loads(text)
    # orjson reads deeper nesting than it writes, so deep that a seal may overflow the stack
    orjson.dumps(details)
    return details


@contextmanager
def allow_any_text(connection: Connection) -> Iterator[None]:
    """Make SQLite, whose texts may hold any bytes, return invalid UTF-8 as surrogates."""
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
