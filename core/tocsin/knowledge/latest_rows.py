"""Queries on the latest rows alone, where there may be very many."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    bindparam,
    func,
    select,
)

from tocsin.store.tables import EPOCH, incident_entities, incidents

HIGHEST = 2**63 - 1
"""Upper bound of incident numbers."""
_LAST_ONES = 1_000
_i = incidents.c
_last_ones = (
    select(_i.number)
    .where(
        _i.occurred_at >= bindparam("since", type_=_i.occurred_at.type),
        _i.occurred_at < bindparam("until", type_=_i.occurred_at.type),
    )
    .order_by(_i.occurred_at.desc(), _i.number.desc())
    .limit(_LAST_ONES)
    .subquery()
)
_highest_of_them = select(func.max(_last_ones.c.number))


def find_highest_number(connection: Connection, until: datetime, since: datetime = EPOCH) -> int:
    """Return the highest incident number to search in this time range; 0 for none.

    It is the highest among the last 1,000 incidents of the range.
    """
    return int(connection.scalar(_highest_of_them, {"since": since, "until": until}) or 0)


def latest_row_conditions(
    wanted: FromClause, count: ColumnElement[int], highest: ColumnElement[int]
) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions for the newest rows of `incident_entities` for each entity of `wanted`.

    They select `count` rows of each, among those with numbers up to `highest`.
    """
    rows = incident_entities.alias()

    def linked(table: FromClause) -> tuple[ColumnElement[bool], ...]:
        same = (table.c.value == wanted.c.value, table.c.kind == wanted.c.kind)
        return (*same, table.c.incident_number <= highest)

    numbers = select(rows.c.incident_number).where(*linked(rows))
    last = numbers.order_by(rows.c.incident_number.desc()).limit(1).offset(count - 1)
    oldest = func.coalesce(last.correlate(wanted).scalar_subquery(), 0)
    return (*linked(incident_entities), incident_entities.c.incident_number >= oldest)
