"""Search over incidents, sessions and entities."""

from tocsin.knowledge.search.documents import (
    SearchDocument,
    index_document,
    index_documents,
    remove_document,
)
from tocsin.knowledge.search.entities import (
    EntityPage,
    EntityPosition,
    FoundEntity,
    list_lookup_names,
    search_entities,
)
from tocsin.knowledge.search.entity_patterns import find_matching_entities
from tocsin.knowledge.search.fields import FIELDS
from tocsin.knowledge.search.indexer import (
    INCIDENTS,
    INDEXED_CHANGES,
    SearchIndexer,
    count_unindexed,
    reindex_incidents,
    restart_index,
)
from tocsin.knowledge.search.results import (
    DocumentHit,
    SearchPage,
    SearchPosition,
    search_documents,
)
from tocsin.knowledge.search.snippets import SnippetPart, find_sought_entities, render_snippet

__all__ = [
    "FIELDS",
    "INCIDENTS",
    "INDEXED_CHANGES",
    "DocumentHit",
    "EntityPage",
    "EntityPosition",
    "FoundEntity",
    "SearchDocument",
    "SearchIndexer",
    "SearchPage",
    "SearchPosition",
    "SnippetPart",
    "count_unindexed",
    "find_matching_entities",
    "find_sought_entities",
    "index_document",
    "index_documents",
    "list_lookup_names",
    "reindex_incidents",
    "remove_document",
    "render_snippet",
    "restart_index",
    "search_documents",
    "search_entities",
]
