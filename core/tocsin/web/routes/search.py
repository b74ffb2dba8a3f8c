"""Searching the history: incidents and sessions by words, entities by their values."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field, StringConstraints
from sqlalchemy import Connection

from tocsin import knowledge
from tocsin.clock import isoformat
from tocsin.fields import any_case
from tocsin.knowledge import DocumentHit, EntityPosition, FoundEntity, SearchPosition
from tocsin.model import EntityKind
from tocsin.web.context import RequestContext, Response
from tocsin.web.pagination import CompositeCursor
from tocsin.web.parsing import QueryModel, ResponseModel
from tocsin.web.routes.fields import (
    Limit,
    TotalRelation,
    composite_cursor_field,
    page_response,
    total_fields,
)

RESULTS = "q"
ENTITIES = "e"
_NUMBER = range(10**18)
Words = Annotated[str, StringConstraints(min_length=1, max_length=2048, pattern=r"^[^\x00]*$")]


class SearchQuery(QueryModel):
    """What to look for."""

    q: Words = Field(
        description='Words, `"phrases"`, `prefix*`, `field:value` and `-not`; all must fit.'
    )
    limit: Limit = 50
    cursor: composite_cursor_field(RESULTS, _NUMBER, _NUMBER, _NUMBER) | None = None  # type: ignore[valid-type]


class EntitySearchQuery(QueryModel):
    """What to look up."""

    q: Words = Field(description="A value, the beginning of one, or of one of its parts.")
    kind: Annotated[EntityKind, any_case(EntityKind)] | None = Field(
        default=None, description="Only entities of this kind, in any case."
    )
    limit: Limit = 50
    cursor: composite_cursor_field(ENTITIES, str, range(2), str, str, _NUMBER) | None = None  # type: ignore[valid-type]


class SearchResult(ResponseModel):
    """An incident or a session that fits."""

    kind: str = Field(json_schema_extra={"enum": ["incident", "session"]})
    id: str = Field(description="The incident's number, or the session's id.")
    title: str
    snippet: str = Field(
        description="The part of it that fits, as HTML: hits in `<mark>`, all else escaped."
    )
    score: float = Field(description="From 0 to 1.")
    at: datetime = Field(description="When the incident occurred, or the session was asked for.")
    url: str = Field(description="Its page in Tocsin's console.")


class SearchResults(ResponseModel):
    """One page of what fits, the best of the latest first."""

    results: list[SearchResult]
    total: int = Field(description="How many fit, counted up to 1,000.")
    total_relation: TotalRelation
    next_cursor: str | None = Field(description="For `cursor`; null on the last page.")


class KnownEntity(ResponseModel):
    """An entity that incidents have."""

    kind: EntityKind
    value: str
    incident_count: int
    first_seen: datetime
    last_seen: datetime


class EntitySearchResults(ResponseModel):
    """One page of entities, those that are called so first."""

    entities: list[KnownEntity]
    total: int = Field(description="How many fit, counted up to 1,000.")
    total_relation: TotalRelation
    next_cursor: str | None = Field(description="For `cursor`; null on the last page.")


def search(connection: Connection, call: RequestContext) -> Response:
    """Answer incidents and sessions that fit the words, the best of the latest first."""
    query: SearchQuery = call.query
    after = SearchPosition(*query.cursor.parts) if query.cursor else None
    page = knowledge.search_documents(connection, query.q, limit=query.limit, after=after)
    content = {
        "results": [_result(found, call.services.public_url) for found in page.results],
        **total_fields(page),
    }
    at = page.next
    following = CompositeCursor(RESULTS, (at.newest, at.top, at.shown)) if at else None
    return page_response(call, content, following)


def search_entities(connection: Connection, call: RequestContext) -> Response:
    """Answer entities that are called so, that begin so, or of which a part does."""
    query: EntitySearchQuery = call.query
    page = knowledge.search_entities(
        connection,
        query.q,
        limit=query.limit,
        kinds=[query.kind] if query.kind else None,
        after=EntityPosition(*query.cursor.parts) if query.cursor else None,
    )
    content = {
        "entities": [_entity(found) for found in page.entities],
        **total_fields(page),
    }
    at = page.next
    following = (
        CompositeCursor(ENTITIES, (at.name, at.part, at.kind, at.value, at.shown)) if at else None
    )
    return page_response(call, content, following)


_PAGES = {"incident": "incidents", "session": "investigations"}


def _result(found: DocumentHit, public_url: str) -> dict[str, Any]:
    return {
        "kind": found.kind,
        "id": found.id,
        "title": found.title,
        "snippet": knowledge.render_snippet(found.snippet),
        "score": found.score,
        "at": isoformat(found.at),
        "url": f"{public_url}/{_PAGES[found.kind]}/{found.id}",
    }


def _entity(found: FoundEntity) -> dict[str, Any]:
    return {
        "kind": found.entity.kind,
        "value": found.entity.value,
        "incident_count": found.incident_count,
        "first_seen": isoformat(found.first_seen),
        "last_seen": isoformat(found.last_seen),
    }
