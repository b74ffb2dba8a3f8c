"""Markings of entities, derived from everything that Tocsin knows about them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, bindparam, func, select

from tocsin.knowledge.search import INDEXED_CHANGES
from tocsin.knowledge.sql_lists import encode_list, select_list
from tocsin.model import Entity, EntityKind, Marking, Pap, Tlp, find_marking
from tocsin.store import force_index_scans, load_last_allotted
from tocsin.store.tables import (
    IS_STRICT,
    entity_providers,
    incident_entities,
    incidents,
    relations,
)

MAX_UNINDEXED = 5_000
"""Number of latest unindexed incidents that are searched."""
_AT_ONCE = 500
_TLPS, _PAPS = tuple(Tlp), tuple(Pap)


@force_index_scans
def find_markings(
    connection: Connection, entities: Iterable[Entity], markings: Mapping[str, Marking]
) -> dict[Entity, Marking]:
    """Return the strictest marking of the sources of each entity.

    Sources are the incidents with it, which have the marking of their provider, and relations with
    it that are stricter than amber. Entities without any source are left out.
    """
    wanted = dict.fromkeys(entities)
    found: defaultdict[Entity, set[Marking]] = defaultdict(set)
    for entity, provider in _iter_providers(connection, list(wanted)):
        if entity in wanted:
            found[entity].add(find_marking(provider, markings))
    for entity, marking in _iter_strict_markings(connection, list(wanted)):
        found[entity].add(marking)
    return {entity: Marking.strictest(several) for entity, several in found.items()}


def _iter_providers(
    connection: Connection, entities: Sequence[Entity]
) -> Iterator[tuple[Entity, str]]:
    """Yield entities with the providers of their incidents; unindexed incidents may add others.

    Unindexed incidents are read first, since they could be indexed between the two reads.
    """
    waiting = {"after": load_last_allotted(connection, INDEXED_CHANGES)}
    for kind, value, provider in connection.execute(_WAITING, waiting):
        yield Entity(EntityKind(kind), value), provider
    statement = _indexed(connection.dialect.name)
    for values in _lists(entities):
        for kind, value, provider in connection.execute(statement, values):
            yield Entity(EntityKind(kind), value), provider


def _iter_strict_markings(
    connection: Connection, entities: Sequence[Entity]
) -> Iterator[tuple[Entity, Marking]]:
    statement = _relations(connection.dialect.name)
    for values in _lists(entities):
        for kind, value, *ranks in connection.execute(statement, values):
            for tlp, pap in (ranks[:2], ranks[2:]):
                if tlp is not None:
                    yield Entity(EntityKind(kind), value), Marking(_TLPS[tlp], _PAPS[pap])


def _lists(entities: Sequence[Entity]) -> Iterator[dict[str, str]]:
    for start in range(0, len(entities), _AT_ONCE):
        yield {"wanted": encode_list(entities[start : start + _AT_ONCE])}


_latest = (
    select(incidents.c.number, incidents.c.provider)
    .where(incidents.c.change > bindparam("after"))
    .order_by(incidents.c.change.desc())
    .limit(MAX_UNINDEXED)
    .subquery()
)
_WAITING = (
    select(incident_entities.c.kind, incident_entities.c.value, _latest.c.provider)
    .select_from(_latest)
    .join(incident_entities, incident_entities.c.incident_number == _latest.c.number)
)


@cache
def _indexed(dialect: str) -> Select[Any]:
    wanted, rows = select_list(dialect, "wanted"), entity_providers.c
    same = (rows.value == wanted.c.value) & (rows.kind == wanted.c.kind)
    query = select(rows.kind, rows.value, rows.provider).select_from(wanted)
    return query.join(entity_providers, same)


@cache
def _relations(dialect: str) -> Select[Any]:
    """Return the statement for the strictest ranks of relations, for each end that an entity is."""
    wanted = select_list(dialect, "wanted")
    strictest = (
        select(func.max(relations.c[rank]))
        .where(value == wanted.c.value, kind == wanted.c.kind, IS_STRICT)
        .correlate(wanted)
        .scalar_subquery()
        for value, kind in _ENDS
        for rank in ("tlp", "pap")
    )
    return select(wanted.c.kind, wanted.c.value, *strictest)


_ENDS: tuple[tuple[ColumnElement[str], ColumnElement[str]], ...] = (
    (relations.c.source_value, relations.c.source_kind),
    (relations.c.target_value, relations.c.target_kind),
)
