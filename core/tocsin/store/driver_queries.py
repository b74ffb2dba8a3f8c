"""Queries that the driver runs itself, for reads that SQLAlchemy's execution would dominate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from operator import itemgetter
from typing import Any

from sqlalchemy import ColumnElement, Dialect, Select

from tocsin.store.tables import EPOCH, Timestamp

Values = tuple[Any, ...]


class DriverQuery:
    """A query for one row, compiled once for each kind of database and prepared by its driver.

    Its parameters are a tuple in the order of `names`. Its values come as they are stored, and
    `load_stored` converts them. A lookup finds its row by keys in next to no time, so that one
    statement may read the rows of several callers.
    """

    def __init__(
        self, query: Select[Any], names: Sequence[str], *, is_lookup: bool = False
    ) -> None:
        self.is_lookup = is_lookup
        self._query = query
        self._names = tuple(names)
        self._compiled: dict[str, tuple[str, Callable[[Values], Values] | None]] = {}

    def bind(self, dialect: Dialect, values: Values) -> tuple[str, Values]:
        """Return the text, and the parameters in its order."""
        found = self._compiled.get(dialect.name)
        if found is None:
            found = self._compiled[dialect.name] = self._compile(dialect)
        text, arrange = found
        return text, values if arrange is None else arrange(values)

    def _compile(self, dialect: Dialect) -> tuple[str, Callable[[Values], Values] | None]:
        """Return the text, and what arranges the parameters for it; None if nothing has to."""
        compiled = self._query.compile(dialect=dialect)
        order = tuple(compiled.positiontup or ())
        constants = {
            name: compiled.params[name] for name in order if compiled.params.get(name) is not None
        }
        if set(order) != {*self._names, *constants}:
            raise RuntimeError(f"the query has the parameters {order}, but received {self._names}")
        if order == self._names:
            return str(compiled), None
        names = (*self._names, *constants)
        pick = itemgetter(*(names.index(name) for name in order))
        if not constants:
            return str(compiled), pick
        rest = tuple(constants.values())
        return str(compiled), lambda values: pick((*values, *rest))


def load_stored(columns: Iterable[ColumnElement[Any]], row: Sequence[Any]) -> dict[str, Any]:
    """Return the values of these columns by name, with times converted.

    Select JSON as text: only one of the drivers parses it.
    """
    return {
        column.key or "": _load(column, value) for column, value in zip(columns, row, strict=True)
    }


def _load(column: ColumnElement[Any], value: Any) -> Any:
    if value is None or not isinstance(column.type, Timestamp):
        return value
    return EPOCH + timedelta(microseconds=value)
