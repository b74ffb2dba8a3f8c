"""`tocsin search`: full-text search."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from sqlalchemy import Connection

from tocsin import knowledge
from tocsin.cli.database import run_on_database
from tocsin.cli.output import AsJson, Columns, Wide, print_records
from tocsin.clock import isoformat
from tocsin.settings import load_settings

Words = Annotated[
    str,
    typer.Argument(
        metavar="QUERY", help='Words, "phrases", prefix*, field:value, or -word to exclude a word.'
    ),
]
Limit = Annotated[int, typer.Option(min=1, max=200, help="Maximum number of results.")]

_COLUMNS = Columns(
    ("kind", "id", "at", "score", "title", "snippet"), brief=("id", "kind", "at", "title")
)
_ENTITIES = Columns(("kind", "value", "incident_count", "first_seen", "last_seen"))


def search(
    query: Words,
    *,
    entities: Annotated[
        bool,
        typer.Option(
            "--entities", help="Search entities by value, instead of incidents and investigations."
        ),
    ] = False,
    limit: Limit = 50,
    as_json: AsJson = False,
    wide: Wide = False,
) -> None:
    """Search incidents and investigations."""
    find = _find_entities if entities else _find
    found = run_on_database(load_settings(), lambda database: database.read(find, query, limit))
    columns = _ENTITIES if entities else _COLUMNS
    print_records(found, columns, as_json=as_json, wide=wide)


def _find(connection: Connection, query: str, limit: int) -> list[dict[str, Any]]:
    page = knowledge.search_documents(connection, query, limit=limit)
    return [
        {
            "kind": found.kind,
            "id": found.id,
            "at": isoformat(found.at),
            "score": found.score,
            "title": found.title,
            "snippet": "".join(part.text for part in found.snippet),
        }
        for found in page.results
    ]


def _find_entities(connection: Connection, query: str, limit: int) -> list[dict[str, Any]]:
    page = knowledge.search_entities(connection, query, limit=limit)
    return [
        {
            "kind": found.entity.kind.value,
            "value": found.entity.value,
            "incident_count": found.incident_count,
            "first_seen": isoformat(found.first_seen),
            "last_seen": isoformat(found.last_seen),
        }
        for found in page.entities
    ]
