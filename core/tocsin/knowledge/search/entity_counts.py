"""Counts of the incidents that each entity is in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from sqlalchemy import Connection, case

from tocsin.knowledge.search.entities import list_lookup_names
from tocsin.model import Entity
from tocsin.store import BulkStatement, Row, build_insert
from tocsin.store.tables import entities, entity_names, entity_providers


@dataclass(frozen=True, slots=True)
class EntityOccurrence:
    """An entity in an incident."""

    entity: Entity
    incident: int
    at: datetime
    new: bool
    """False if it was counted before, and only its time may have changed."""


@dataclass(frozen=True, slots=True)
class EntityRows:
    """The rows by which occurrences are counted, and entities are looked up."""

    counts: list[Row]
    names: list[Row]
    providers: list[Row]

    @classmethod
    def build(
        cls, occurrences: Iterable[EntityOccurrence], providers: Iterable[tuple[Entity, str]]
    ) -> Self:
        """Return the rows; `providers` are those of the incidents with these entities."""
        counted: dict[Entity, list[Any]] = {}
        for occurrence in occurrences:
            at, number = occurrence.at, occurrence.incident
            known = counted.setdefault(occurrence.entity, [0, at, at, number])
            known[0] += occurrence.new
            known[1] = min(known[1], at)
            known[2] = max(known[2], at)
            known[3] = max(known[3], number)
        ordered = sorted(counted.items(), key=lambda item: (item[0].kind, item[0].value))
        names = [
            (name, part, entity.kind.value, entity.value)
            for entity, known in ordered
            if known[0]
            for name, part in list_lookup_names(entity)
        ]
        of_providers = {(entity.kind.value, entity.value, name) for entity, name in providers}
        return cls(
            [(entity.kind.value, entity.value, *known) for entity, known in ordered],
            names,
            sorted(of_providers),
        )

    def store(self, connection: Connection) -> None:
        """Count the occurrences, and index the entities for lookup."""
        _ADD_PROVIDERS.run(connection, self.providers)
        _COUNT.run(connection, self.counts)
        _ADD_NAMES.run(connection, self.names)


_COUNTS = ("kind", "value", "incident_count", "first_seen", "last_seen", "last_incident")


def _build_count(connection: Connection) -> Any:
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
    return statement.on_conflict_do_update(index_elements=["kind", "value"], set_=changes)


_COUNT = BulkStatement(_build_count, _COUNTS)
_ADD_NAMES = BulkStatement(
    lambda connection: build_insert(connection, entity_names).on_conflict_do_nothing(),
    entity_names.c.keys(),
)
_ADD_PROVIDERS = BulkStatement(
    lambda connection: build_insert(connection, entity_providers).on_conflict_do_nothing(),
    entity_providers.c.keys(),
)
