"""Asking for deliveries by their state, in words that the partial indexes understand.

An index serves no condition that comes as a parameter, so a state is written out; and SQLite has to
be told in the index's own words that it may be used.
"""

from __future__ import annotations

from sqlalchemy import ColumnElement, FromClause, literal_column

from tocsin.delivery.queue.seam import DEAD, PARKED
from tocsin.store.tables import deliveries

_RESTING = (DEAD, PARKED)


def _state_literal(state: str) -> ColumnElement[str]:
    return literal_column(f"'{state}'")


IS_RESTING: ColumnElement[bool] = deliveries.c.state.in_(
    [_state_literal(state) for state in _RESTING]
)
"""The condition that nothing is attempted until someone acts: dead, or parked."""


def is_stored_as(state: str, of: FromClause = deliveries) -> ColumnElement[bool]:
    """Return the condition that this is a delivery's own state, whatever its destination's is.

    `of` is the table of deliveries under another name.
    """
    is_it: ColumnElement[bool] = of.c.state == _state_literal(state)
    if state not in _RESTING:
        return is_it
    return of.c.state.in_([_state_literal(resting) for resting in _RESTING]) & is_it
