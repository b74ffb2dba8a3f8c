"""Counts of the incidents that each entity is in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, case

from tocsin.knowledge.search.entities import list_lookup_names
from tocsin.model import Entity
from tocsin.store import BulkStatement, build_insert
from tocsin.store.tables import entities, entity_names, entity_providers


@dataclass(frozen=True, slots=True)
class EntityOccurrence:
    """An entity in an incident."""

    entity: Entity
    incident: int
    at: datetime
    new: bool
    """False if it was counted before, and only its time may have changed."""


def count_entities(connection: Connection, occurrences: Iterable[EntityOccurrence]) -> None:
    """Count new occurrences, and index the entities for lookup."""
    counted: dict[Entity, list[Any]] = {}
    for occurrence in occurrences:
        known = counted.setdefault(
            occurrence.entity, [0, occurrence.at, occurrence.at, occurrence.incident]
        )
        known[:] = [
            known[0] + occurrence.new,
            min(known[1], occurrence.at),
            max(known[2], occurrence.at),
            max(known[3], occurrence.incident),
        ]
    ordered = sorted(counted.items(), key=lambda item: (item[0].kind, item[0].value))
    _upsert(connection).run(
        connection, [(entity.kind.value, entity.value, *known) for entity, known in ordered]
    )
    names = [
        (name, part, entity.kind.value, entity.value)
        for entity, known in ordered
        if known[0]
        for name, part in list_lookup_names(entity)
    ]
    _name(connection).run(connection, names)


def note_providers(connection: Connection, named: Iterable[tuple[Entity, str]]) -> None:
    """Store the providers of the incidents with these entities."""
    rows = {(entity.kind.value, entity.value, provider) for entity, provider in named}
    _provider(connection).run(connection, sorted(rows))


_COUNTS = ("kind", "value", "incident_count", "first_seen", "last_seen", "last_incident")
_statements: dict[tuple[str, str], BulkStatement] = {}


def _upsert(connection: Connection) -> BulkStatement:
    """Return the statement that inserts or updates the count of an entity."""
    statement = build_insert(connection, entities)
    new, old = statement.excluded, entities.c
    earlier = case((new.first_seen < old.first_seen, new.first_seen), else_=old.first_seen)
    later = case((new.last_seen > old.last_seen, new.last_seen), else_=old.last_seen)
    last = case((new.last_incident > old.last_incident, new.last_incident), else_=old.last_incident)
    changes = {
        "incident_count": old.incident_count + new.incident_count,
        "first_seen": earlier,
        "last_seen": later,
        "last_incident": last,
    }
    statement = statement.on_conflict_do_update(index_elements=["kind", "value"], set_=changes)
    return _batch(connection, "counts", statement, _COUNTS)


def _name(connection: Connection) -> BulkStatement:
    statement = build_insert(connection, entity_names).on_conflict_do_nothing()
    return _batch(connection, "names", statement, tuple(entity_names.c.keys()))


def _provider(connection: Connection) -> BulkStatement:
    statement = build_insert(connection, entity_providers).on_conflict_do_nothing()
    return _batch(connection, "providers", statement, tuple(entity_providers.c.keys()))


def _batch(
    connection: Connection, what: str, statement: Any, names: Sequence[str]
) -> BulkStatement:
    key = (connection.dialect.name, what)
    if key not in _statements:
        _statements[key] = BulkStatement(statement, names)
    return _statements[key]
