"""What a credential may do."""

from __future__ import annotations

from enum import StrEnum


class Scope(StrEnum):
    """A permission that a credential carries; each endpoint asks for one."""

    INVESTIGATIONS_READ = "investigations:read"
    INVESTIGATIONS_WRITE = "investigations:write"
    INCIDENTS_READ = "incidents:read"
    SEARCH_READ = "search:read"
    GRAPH_READ = "graph:read"
