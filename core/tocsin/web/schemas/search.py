"""Schemas of search."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar

from pydantic import Field, StringConstraints

from tocsin.fields import any_case
from tocsin.model import EntityKind, Json
from tocsin.web.parsing import QueryModel, ResponseModel
from tocsin.web.schemas.examples import FINISHED, URL
from tocsin.web.schemas.fields import Limit, TotalRelation, composite_cursor_field

RESULTS = "q"

ENTITIES = "e"

_NUMBER = range(10**18)

Words = Annotated[str, StringConstraints(min_length=1, max_length=2048, pattern=r"^[^\x00]*$")]


class SearchQuery(QueryModel):
    """A search query."""

    q: Words = Field(
        description='Words, `"phrases"`, `prefix*`, `field:value` and `-not`. A result matches '
        "all of them."
    )
    limit: Limit = 50
    cursor: composite_cursor_field(RESULTS, _NUMBER, _NUMBER, _NUMBER) | None = None  # type: ignore[valid-type]


class EntitySearchQuery(QueryModel):
    """An entity lookup."""

    q: Words = Field(description="A value, or the beginning of a value or of one of its parts.")
    kind: Annotated[EntityKind, any_case(EntityKind)] | None = Field(
        default=None, description="Filter by kind, case-insensitive."
    )
    limit: Limit = 50
    cursor: composite_cursor_field(ENTITIES, str, range(2), str, str, _NUMBER) | None = None  # type: ignore[valid-type]


class SearchResult(ResponseModel):
    """An incident or session that matches the query."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "id": "4711",
        "title": "Brute force against web01",
        "snippet": "37 failures from <mark>203.0.113.7</mark> within a minute",
        "score": 0.82,
        "url": f"{URL}/incidents/4711",
    }

    kind: str = Field(json_schema_extra={"enum": ["incident", "session"]})
    id: str = Field(description="Number of the incident, or ID of the session.")
    title: str
    snippet: str = Field(description="Matching excerpt as HTML, with matches in `<mark>`.")
    score: float = Field(description="Relevance, from 0 to 1.")
    at: datetime = Field(description="When the incident occurred or the session was created.")
    url: str = Field(description="URL of the page in the console.")


class SearchResults(ResponseModel):
    """One page of the latest matches, best match first."""

    results: list[SearchResult]
    total: int = Field(description="Number of matches, counted up to 1,000.")
    total_relation: TotalRelation
    next_cursor: str | None = Field(description="Next `cursor`; null on the last page.")


class KnownEntity(ResponseModel):
    """An entity that occurs in incidents."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "value": "203.0.113.7",
        "incident_count": 4,
        "last_seen": FINISHED,
    }

    kind: EntityKind
    value: str
    incident_count: int
    first_seen: datetime
    last_seen: datetime


class EntitySearchResults(ResponseModel):
    """One page of entities, exact matches first."""

    entities: list[KnownEntity]
    total: int = Field(description="Number of matches, counted up to 1,000.")
    total_relation: TotalRelation
    next_cursor: str | None = Field(description="Next `cursor`; null on the last page.")
