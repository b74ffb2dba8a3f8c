"""Answering from what is kept here: incidents, the graph, and search."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import Connection

from tocsin.errors import CallerError
from tocsin.investigations.answering.reply import Reply
from tocsin.knowledge.graph import DEEPEST, neighbourhood
from tocsin.knowledge.history import (
    incidents_about,
    incidents_numbered,
    incidents_within,
    sightings,
)
from tocsin.knowledge.search import search
from tocsin.model import (
    IncidentRecord,
    IncidentsAbout,
    IncidentsNumbered,
    IncidentsWithin,
    Marking,
    Match,
    Matching,
    Neighbourhood,
    NeighboursOf,
    Node,
    Outcome,
    Question,
    Sighting,
    SightingsOf,
)
from tocsin.observables import Environment
from tocsin.store import Database

LARGEST_LIMIT = 1_000
"""No question is answered with more records than this, whatever its own limit is."""
_SEARCHED = ("incident", "session")


class History:
    """Answers what our own database knows; it raises what that raises."""

    def __init__(
        self, database: Database, markings: Mapping[str, Marking], environment: Environment
    ) -> None:
        """Take how each provider's incidents are marked, and what is internal and well known."""
        self._database = database
        self._markings = markings
        self._environment = environment
        self._kinds: dict[type[Question[Any]], Callable[[Connection, Any], Any]] = {
            IncidentsNumbered: self._numbered,
            IncidentsAbout: self._about,
            IncidentsWithin: self._within,
            SightingsOf: self._sightings,
            NeighboursOf: self._neighbours,
            Matching: self._matching,
        }

    async def __call__(self, question: Question[Any]) -> Reply:
        """Return what is known."""
        try:
            content = await self._database.read(self._kinds[type(question)], question)
        except CallerError as error:  # words that the search does not understand
            return Reply(Outcome.REFUSED, reason=error.detail)
        return Reply(Outcome.ANSWERED, content)

    def _numbered(self, connection: Connection, q: IncidentsNumbered) -> tuple[IncidentRecord, ...]:
        return tuple(incidents_numbered(connection, q.numbers, self._markings))

    def _about(self, connection: Connection, q: IncidentsAbout) -> tuple[IncidentRecord, ...]:
        found = incidents_about(
            connection,
            q.entities,
            self._markings,
            window=q.window,
            provider=q.provider,
            limit=_limit(q.limit),
        )
        return tuple(found)

    def _within(self, connection: Connection, q: IncidentsWithin) -> tuple[IncidentRecord, ...]:
        found = incidents_within(
            connection,
            q.window,
            self._markings,
            provider=q.provider,
            min_severity=q.min_severity,
            limit=_limit(q.limit),
        )
        return tuple(found)

    def _sightings(self, connection: Connection, q: SightingsOf) -> tuple[Sighting, ...]:
        return tuple(sightings(connection, q.entities, self._environment))

    def _neighbours(self, connection: Connection, q: NeighboursOf) -> Neighbourhood:
        node, depth = Node.of(q.entity), max(1, min(q.depth, DEEPEST))
        found = neighbourhood(connection, node, depth=depth, limit=_limit(q.limit))
        return found or Neighbourhood(nodes=(node,), edges=(), complete=True)

    def _matching(self, connection: Connection, q: Matching) -> tuple[Match, ...]:
        page = search(connection, q.text, limit=_limit(q.limit), kinds=_SEARCHED)
        return tuple(
            Match(kind=it.kind, id=it.id, title=it.title, score=it.score) for it in page.results
        )


def _limit(limit: int) -> int:
    return max(1, min(limit, LARGEST_LIMIT))
