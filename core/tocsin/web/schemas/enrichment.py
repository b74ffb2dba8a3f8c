"""Schemas of enrichments."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from tocsin.enrichment import (
    EnrichmentDifference,
)
from tocsin.model import Disposition, Json, QueryOutcome
from tocsin.web.parsing import ResponseModel
from tocsin.web.schemas.incidents import EntityItem


class EntityEnrichment(ResponseModel):
    """An enricher's result for an entity."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "summary": "It is in 4 incidents.",
        "disposition": "suspicious",
        "facts": {"incident_count": 4},
    }

    summary: str
    disposition: Disposition
    score: int | None = Field(description="Score that the source assigns, from 0 to 100.")
    tags: list[str]
    techniques: list[str]
    facts: dict[str, Any] = Field(description="Supporting facts from the source.")
    link: str | None


class EnrichmentChange(ResponseModel):
    """An enricher's result for an entity, compared with its previous result."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "enricher": "history",
        "enrichment": {
            "summary": "It is in 4 incidents.",
            "disposition": "suspicious",
            "score": None,
            "tags": [],
            "techniques": [],
            "facts": {"incident_count": 4},
            "link": None,
        },
    }

    entity: EntityItem
    enricher: str
    difference: EnrichmentDifference
    enrichment: EntityEnrichment | None = Field(
        description="Current result; null if there is none."
    )


class NotEnriched(ResponseModel):
    """An entity for which an enricher has no result, with the reason."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "entity": {"kind": "ip", "value": "10.20.0.4"},
        "enricher": "abuseipdb",
        "outcome": "refused",
        "reason": "it is internal, and internal entities are not shared",
    }

    entity: EntityItem
    enricher: str
    outcome: QueryOutcome
    reason: str


class IncidentEnrichment(ResponseModel):
    """Enrichment of an incident."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"incident_number": 4711, "failed": [], "passed_over": 0}

    incident_number: int
    changed: int = Field(
        description="Number of `enrichments` with a `difference` other than `same`."
    )
    enrichments: list[EnrichmentChange]
    skipped: list[NotEnriched] = Field(description="Lookups that the sharing policy forbids.")
    failed: list[NotEnriched] = Field(description="Failed lookups.")
    passed_over: int = Field(
        description="Number of entities that Tocsin did not enrich because the incident has too "
        "many."
    )
