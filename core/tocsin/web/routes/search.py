"""Endpoints for the search of incidents and sessions, and for the lookup of entities."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection

from tocsin import knowledge
from tocsin.clock import isoformat
from tocsin.credentials import Scope
from tocsin.knowledge import DocumentHit, EntityPosition, FoundEntity, SearchPosition
from tocsin.web.context import Endpoint, RequestContext, Response
from tocsin.web.pagination import CompositeCursor, page_response, total_fields
from tocsin.web.record_problems import INVALID_SEARCH
from tocsin.web.schemas.search import (
    ENTITIES,
    RESULTS,
    EntitySearchQuery,
    EntitySearchResults,
    SearchQuery,
    SearchResults,
)


def search(connection: Connection, call: RequestContext) -> Response:
    """Return the latest incidents and sessions that match the query, best match first."""
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
    """Return entities whose value, or a part of it, equals or starts with the text."""
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


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/api/v1/search",
        access=Scope.SEARCH_READ,
        summary="Search incidents and investigations",
        handler=search,
        may_lag=True,
        problems=(INVALID_SEARCH,),
        query=SearchQuery,
        response=SearchResults,
    ),
    Endpoint(
        method="GET",
        path="/api/v1/search/entities",
        access=Scope.SEARCH_READ,
        summary="Look up entities by value",
        handler=search_entities,
        may_lag=True,
        query=EntitySearchQuery,
        response=EntitySearchResults,
    ),
)
