"""Schemas of enrichment."""

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
    """What one enricher knows of an entity."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "summary": "It is in 4 incidents.",
        "disposition": "suspicious",
        "facts": {"incident_count": 4},
    }

    summary: str
    disposition: Disposition
    score: int | None = Field(description="The source's own measure, from 0 to 100.")
    tags: list[str]
    techniques: list[str]
    facts: dict[str, Any] = Field(description="What it rests on, in the source's words.")
    link: str | None


class EnrichmentChange(ResponseModel):
    """What one enricher says of one entity, held against what it said before."""

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
    enrichment: EntityEnrichment | None = Field(description="Null where nothing is known any more.")


class NotEnriched(ResponseModel):
    """That an enricher said nothing of an entity, and why."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "entity": {"kind": "ip", "value": "10.20.0.4"},
        "enricher": "abuseipdb",
        "outcome": "refused",
        "reason": "it is internal, and nothing internal leaves",
    }

    entity: EntityItem
    enricher: str
    outcome: QueryOutcome
    reason: str


class IncidentEnrichment(ResponseModel):
    """What enriching an incident came to."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"incident_number": 4711, "failed": [], "passed_over": 0}

    incident_number: int
    changed: int = Field(description="How many of `enrichments` are not as before.")
    enrichments: list[EnrichmentChange]
    skipped: list[NotEnriched] = Field(description="What was not asked, since a rule forbids it.")
    failed: list[NotEnriched] = Field(description="What was asked in vain.")
    passed_over: int = Field(description="How many entities there are beyond those enriched.")
