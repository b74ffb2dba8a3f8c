"""Counting what matches, but not for ever."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, FromClause, func, literal, select

COUNTED = 10_000
"""Totals are exact up to here."""


@dataclass(frozen=True, slots=True)
class Total:
    """How many there are."""

    count: int
    exact: bool
    """False where there are more."""


def count_matching(
    connection: Connection, source: FromClause, conditions: Iterable[ColumnElement[bool]]
) -> Total:
    """Return how many rows match, counted up to COUNTED."""
    some = select(literal(1)).select_from(source).where(*conditions).limit(COUNTED + 1)
    count = connection.scalars(select(func.count()).select_from(some.subquery())).one()
    return Total(min(count, COUNTED), count <= COUNTED)
