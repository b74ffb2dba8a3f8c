"""An incident as the API and the events show it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tocsin.clock import isoformat

COLUMNS = (
    "number",
    "provider",
    "external_id",
    "external_number",
    "title",
    "description",
    "severity",
    "raw_severity",
    "severity_assumed",
    "status",
    "raw_status",
    "merged_into",
    "source_url",
    "alert_count",
    "techniques",
    "occurred_at",
    "created_at",
    "updated_at",
)
"""The columns that are shown."""
_MOMENTS = COLUMNS[-3:]


def build_incident_url(public_url: str, number: int) -> str:
    """Return the address of the incident's page."""
    return f"{public_url}/incidents/{number}"


def represent_incident(
    columns: Mapping[Any, Any], entities: list[dict[str, str]], *, public_url: str
) -> dict[str, Any]:
    """Return an incident, given as its columns, as JSON."""
    shown = {name: columns[name] for name in COLUMNS}
    for name in _MOMENTS:
        shown[name] = isoformat(shown[name])
    shown["url"] = build_incident_url(public_url, shown["number"])
    shown["entities"] = entities
    return shown
