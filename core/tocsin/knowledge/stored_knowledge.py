"""Stored knowledge that enrichers can query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tocsin.knowledge.graph import find_neighborhood
from tocsin.knowledge.history import find_incidents, find_sightings
from tocsin.model import Entity, IncidentRecord, Marking, Neighborhood, Node, Sighting, Window
from tocsin.observables import Environment
from tocsin.store import Database


class StoredKnowledge:
    """The knowledge in the database; implements `tocsin.hookspecs.Knowledge`."""

    def __init__(
        self, database: Database, environment: Environment, markings: Mapping[str, Marking]
    ) -> None:
        self._database = database
        self._environment = environment
        self._markings = markings

    async def sightings(self, entities: Sequence[Entity]) -> Sequence[Sighting]:
        """Return the sighting of each entity, in order."""
        return await self._database.read(find_sightings, entities, self._environment)

    async def incidents_about(
        self, entities: Sequence[Entity], window: Window | None = None, limit: int = 50
    ) -> Sequence[IncidentRecord]:
        """Return the latest incidents that involve any of these entities, the newest first."""
        return await self._database.read(
            find_incidents, entities, self._markings, window=window, limit=limit
        )

    async def neighbors(self, entity: Entity, depth: int = 1, limit: int = 100) -> Neighborhood:
        """Return the neighborhood of an entity; the entity alone if it is unknown."""
        node = Node.of(entity)
        found = await self._database.read(find_neighborhood, node, depth=depth, limit=limit)
        return found or Neighborhood(nodes=(node,), edges=(), complete=True)
