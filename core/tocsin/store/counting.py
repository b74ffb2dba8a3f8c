"""Counting what matches, but not for ever."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

from sqlalchemy import ColumnElement, Connection, FromClause, Select, func, literal, select

MAX_COUNTED = 10_000
"""Totals are exact up to here."""


@dataclass(frozen=True, slots=True)
class Total:
    """How many there are."""

    count: int
    exact: bool
    """False where there are more."""

    @classmethod
    def of(cls, counted: int) -> Self:
        """Return what `build_bounded_count` comes to."""
        return cls(min(counted, MAX_COUNTED), counted <= MAX_COUNTED)


def build_bounded_count(
    source: FromClause, conditions: Iterable[ColumnElement[bool]]
) -> Select[Any]:
    """Return the query of how many rows match, or of one more than is counted."""
    some = select(literal(1)).select_from(source).where(*conditions).limit(MAX_COUNTED + 1)
    return select(func.count()).select_from(some.subquery())


def count_matching(
    connection: Connection, source: FromClause, conditions: Iterable[ColumnElement[bool]]
) -> Total:
    """Return how many rows match, counted up to COUNTED."""
    return Total.of(connection.scalars(build_bounded_count(source, conditions)).one())
