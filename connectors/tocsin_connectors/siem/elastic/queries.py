"""Which alerts have changed, in the query DSL of Elasticsearch."""

from __future__ import annotations

from typing import Any

from tocsin import Window
from tocsin_connectors.siem.elastic.alerts import BUILDING_BLOCK_TYPE, STATUS_UPDATED, TIMESTAMP
from tocsin_connectors.siem.indices.walk import build_time_query


def build_change_query(window: Window) -> dict[str, Any]:
    """Return the clause for the alerts that were made, or whose status was changed, in a window."""
    changes = [build_time_query(name, window) for name in (TIMESTAMP, STATUS_UPDATED)]
    return {
        "bool": {
            "should": changes,
            "minimum_should_match": 1,
            "must_not": [{"exists": {"field": BUILDING_BLOCK_TYPE}}],
        }
    }
