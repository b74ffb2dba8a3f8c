"""Sightings of entities in stored incidents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Connection, Select, bindparam, func, literal, select

from tocsin.knowledge.latest_rows import HIGHEST, latest_row_conditions
from tocsin.knowledge.sql_lists import encode_list, select_list
from tocsin.model import Entity, Sighting
from tocsin.observables import Environment
from tocsin.store import force_index_scans
from tocsin.store.tables import entities, incident_entities, incidents

RECENT = 10
"""Number of latest incidents returned with a sighting."""
COUNTED = 1_000
"""Upper bound of the count for an entity that is not indexed yet."""
_e, _i = incident_entities.c, incidents.c


@force_index_scans
def find_sightings(
    connection: Connection, seen: Sequence[Entity], environment: Environment
) -> list[Sighting]:
    """Return the sighting of each entity, in order.

    The number of incidents is that of the index; an entity that is not indexed yet is counted, up
    to 1,000.
    """
    dialect, values = connection.dialect.name, {"wanted": encode_list(seen)}
    recent: list[list[int]] = [[] for _ in seen]
    for place, number in connection.execute(_recent(dialect), {**values, "kept": RECENT}):
        recent[place].append(number)
    known = {row.place: row[1:] for row in connection.execute(_indexed(dialect), values)}
    unindexed = [at for at, numbers in enumerate(recent) if numbers and at not in known]
    for at in unindexed:
        known[at] = connection.execute(_COUNTING, _named(seen[at])).one()
    return [
        _sighting(entity, known.get(at, (0, None, None)), recent[at], environment)
        for at, entity in enumerate(seen)
    ]


def _sighting(
    entity: Entity, known: Sequence[Any], recent: Iterable[int], environment: Environment
) -> Sighting:
    count, first, last = known
    return Sighting(
        entity=entity,
        incident_count=count,
        first_seen=first,
        last_seen=last,
        recent=tuple(sorted(recent, reverse=True)),
        internal=environment.is_internal(entity),
        well_known=environment.is_well_known(entity),
    )


def _named(entity: Entity) -> dict[str, str]:
    return {"kind": entity.kind, "value": entity.value}


_counted = (
    select(_e.incident_number)
    .where(_e.value == bindparam("value"), _e.kind == bindparam("kind"))
    .order_by(_e.incident_number.desc())
    .limit(COUNTED)
    .subquery()
)
_COUNTING = select(func.count(), func.min(_i.occurred_at), func.max(_i.occurred_at)).join_from(
    _counted, incidents, _i.number == _counted.c.incident_number
)


@cache
def _recent(dialect: str) -> Select[Any]:
    wanted = select_list(dialect, "wanted")
    newest = latest_row_conditions(wanted, literal(RECENT), literal(HIGHEST))
    return select(wanted.c.place, _e.incident_number).where(*newest)


@cache
def _indexed(dialect: str) -> Select[Any]:
    wanted, known = select_list(dialect, "wanted"), entities.c
    same = (known.kind == wanted.c.kind) & (known.value == wanted.c.value)
    columns = (wanted.c.place, known.incident_count, known.first_seen, known.last_seen)
    return select(*columns).join_from(wanted, entities, same)
