"""Answers from stored incidents, the graph and search."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import Connection

from tocsin.errors import InvalidInputError
from tocsin.investigations.answers.reply import SourceReply
from tocsin.knowledge.graph import MAX_DEPTH, find_neighborhood
from tocsin.knowledge.history import (
    find_incidents,
    find_sightings,
    list_incidents_within,
    load_incidents,
)
from tocsin.knowledge.search import find_matching_entities, search_documents
from tocsin.model import (
    FindEntities,
    FindIncidents,
    FindNeighbors,
    FoundEntities,
    GetIncidents,
    GetSightings,
    IncidentRecord,
    ListIncidents,
    Marking,
    Match,
    Neighborhood,
    Node,
    QueryOutcome,
    Question,
    SearchHistory,
    Sighting,
)
from tocsin.observables import EntityPattern, Environment
from tocsin.store import Database

LARGEST_LIMIT = 1_000
"""Maximum number of records in one answer, whatever limit the question gives."""
_SEARCHED = ("incident", "session")


class HistoryAnswers:
    """Answers from Tocsin's own database; database errors propagate."""

    def __init__(
        self, database: Database, markings: Mapping[str, Marking], environment: Environment
    ) -> None:
        """Take the marking of each provider's incidents, and the environment."""
        self._database = database
        self._markings = markings
        self._environment = environment
        self._kinds: dict[type[Question[Any]], Callable[[Connection, Any], Any]] = {
            GetIncidents: self._load_numbered,
            FindIncidents: self._find_about,
            ListIncidents: self._list_within,
            FindEntities: self._find_like,
            GetSightings: self._find_sightings,
            FindNeighbors: self._find_neighbors,
            SearchHistory: self._search,
        }

    async def __call__(self, question: Question[Any]) -> SourceReply:
        """Return the stored records that answer a question."""
        try:
            content = await self._database.read(self._kinds[type(question)], question)
        except InvalidInputError as error:  # invalid search query or pattern
            return SourceReply(QueryOutcome.REFUSED, reason=str(error))
        return SourceReply(QueryOutcome.ANSWERED, content)

    def _load_numbered(self, connection: Connection, q: GetIncidents) -> tuple[IncidentRecord, ...]:
        return tuple(load_incidents(connection, q.numbers, self._markings))

    def _find_about(self, connection: Connection, q: FindIncidents) -> tuple[IncidentRecord, ...]:
        found = find_incidents(
            connection,
            q.entities,
            self._markings,
            window=q.window,
            provider=q.provider,
            limit=_limit(q.limit),
        )
        return tuple(found)

    def _list_within(self, connection: Connection, q: ListIncidents) -> tuple[IncidentRecord, ...]:
        found = list_incidents_within(
            connection,
            q.window,
            self._markings,
            provider=q.provider,
            min_severity=q.min_severity,
            limit=_limit(q.limit),
        )
        return tuple(found)

    def _find_like(self, connection: Connection, q: FindEntities) -> FoundEntities:
        try:
            pattern = EntityPattern.parse(q.pattern, q.kinds)
        except ValueError as error:
            raise InvalidInputError(f"{q.pattern!r:.200} is not a valid pattern: {error}") from None
        limit = _limit(q.limit)
        found, complete = find_matching_entities(connection, pattern, q.window, limit)
        return FoundEntities(entities=tuple(found), complete=complete)

    def _find_sightings(self, connection: Connection, q: GetSightings) -> tuple[Sighting, ...]:
        return tuple(find_sightings(connection, q.entities, self._environment))

    def _find_neighbors(self, connection: Connection, q: FindNeighbors) -> Neighborhood:
        node, depth = Node.of(q.entity), max(1, min(q.depth, MAX_DEPTH))
        found = find_neighborhood(connection, node, depth=depth, limit=_limit(q.limit))
        return found or Neighborhood(nodes=(node,), edges=(), complete=True)

    def _search(self, connection: Connection, q: SearchHistory) -> tuple[Match, ...]:
        page = search_documents(connection, q.text, limit=_limit(q.limit), kinds=_SEARCHED)
        return tuple(
            Match(kind=result.kind, id=result.id, title=result.title, score=result.score)
            for result in page.results
        )


def _limit(limit: int) -> int:
    return max(1, min(limit, LARGEST_LIMIT))
