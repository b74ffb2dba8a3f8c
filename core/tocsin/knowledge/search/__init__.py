"""Searching what is known: incidents, sessions and entities."""

from tocsin.knowledge.search.composing import SearchDocument
from tocsin.knowledge.search.documents import index_document, index_documents, remove_document
from tocsin.knowledge.search.entities import (
    EntityPage,
    EntityPosition,
    FoundEntity,
    search_entities,
)
from tocsin.knowledge.search.fields import FIELDS
from tocsin.knowledge.search.indexing import INCIDENTS, INDEXED, Indexer, lag
from tocsin.knowledge.search.searching import Found, Position, SearchPage, search
from tocsin.knowledge.search.snippets import Part, as_html

__all__ = [
    "FIELDS",
    "INCIDENTS",
    "INDEXED",
    "EntityPage",
    "EntityPosition",
    "Found",
    "FoundEntity",
    "Indexer",
    "Part",
    "Position",
    "SearchDocument",
    "SearchPage",
    "as_html",
    "index_document",
    "index_documents",
    "lag",
    "remove_document",
    "search",
    "search_entities",
]
