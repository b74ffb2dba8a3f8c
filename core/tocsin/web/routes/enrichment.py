"""Enriching an incident: asking everyone who may know more of its entities."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic import Field

from tocsin import audit
from tocsin.enrichment import (
    EnrichmentChanges,
    EnrichmentDifference,
    EntityEnrichmentChange,
    UnansweredEntity,
)
from tocsin.errors import CallerError
from tocsin.model import Disposition, Enrichment, QueryOutcome
from tocsin.web.context import MAX_CONCURRENT_ENRICHMENTS, ApiServices, RequestContext, Response
from tocsin.web.dispatch import build_audit_entry
from tocsin.web.parsing import ResponseModel, parse_number
from tocsin.web.routes.incidents import EntityItem

ACTION = "incident.enrich"
LONGEST = 60
"""Seconds that enriching an incident may take in all."""


class EntityEnrichment(ResponseModel):
    """What one enricher knows of an entity."""

    summary: str
    disposition: Disposition
    score: int | None = Field(description="The source's own measure, from 0 to 100.")
    tags: list[str]
    techniques: list[str]
    facts: dict[str, Any] = Field(description="What it rests on, in the source's words.")
    link: str | None


class EnrichmentChange(ResponseModel):
    """What one enricher says of one entity, held against what it said before."""

    entity: EntityItem
    enricher: str
    difference: EnrichmentDifference
    enrichment: EntityEnrichment | None = Field(description="Null where nothing is known any more.")


class NotEnriched(ResponseModel):
    """That an enricher said nothing of an entity, and why."""

    entity: EntityItem
    enricher: str
    outcome: QueryOutcome
    reason: str


class IncidentEnrichment(ResponseModel):
    """What enriching an incident came to."""

    incident_number: int
    changed: int = Field(description="How many of `enrichments` are not as before.")
    enrichments: list[EnrichmentChange]
    skipped: list[NotEnriched] = Field(description="What was not asked, since a rule forbids it.")
    failed: list[NotEnriched] = Field(description="What was asked in vain.")
    passed_over: int = Field(description="How many entities there are beyond those enriched.")


async def enrich_incident(call: RequestContext) -> Response:
    """Ask every enricher for the incident's entities, and answer what is known and what changed."""
    number = parse_number(call.path["number"])
    found = await _enrich(call.services, number) if number else None
    if found is None:
        raise CallerError(404, "There is no incident of this number.")
    changes = [_change(change) for change in found.changes]
    changed = sum(change["difference"] != EnrichmentDifference.SAME for change in changes)
    await call.services.database.write(audit.record, _entry(call, changed))
    return Response(
        {
            "incident_number": found.number,
            "changed": changed,
            "enrichments": changes,
            "skipped": [_unanswered(it) for it in found.skipped],
            "failed": [_unanswered(it) for it in found.failed],
            "passed_over": found.passed_over,
        }
    )


async def _enrich(services: ApiServices, number: int) -> EnrichmentChanges | None:
    """Return what enriching came to; CallerError (503) where there is no room, or no end."""
    if services.enrichments.locked():
        raise _unavailable(
            f"{MAX_CONCURRENT_ENRICHMENTS} incidents are being enriched already; try again later."
        )
    async with services.enrichments:
        try:
            async with asyncio.timeout(LONGEST):
                return await services.enriching().enrich(number)
        except TimeoutError:
            raise _unavailable(f"It took longer than {LONGEST} s, and was given up.") from None


def _unavailable(words: str) -> CallerError:
    return CallerError(503, words, headers={"Retry-After": "10"})


def _entry(call: RequestContext, changed: int) -> audit.AuditRecord:
    return build_audit_entry(
        call.services,
        call.request,
        call.services.clock.now(),
        actor=call.principal.id,
        action=ACTION,
        target=f"incident:{call.path['number']}",
        details={"changed": changed},
    )


def _change(change: EntityEnrichmentChange) -> dict[str, Any]:
    return {
        "entity": _entity(change.entity),
        "enricher": change.enricher,
        "difference": change.difference,
        "enrichment": change.enrichment and _enrichment(change.enrichment),
    }


def _enrichment(enrichment: Enrichment) -> dict[str, Any]:
    return {
        "summary": enrichment.summary,
        "disposition": enrichment.disposition,
        "score": enrichment.score,
        "tags": list(enrichment.tags),
        "techniques": list(enrichment.techniques),
        "facts": dict(enrichment.facts),
        "link": enrichment.link,
    }


def _unanswered(unanswered: UnansweredEntity) -> dict[str, Any]:
    return {
        "entity": _entity(unanswered.entity),
        "enricher": unanswered.enricher,
        "outcome": unanswered.outcome,
        "reason": unanswered.reason,
    }


def _entity(entity: Any) -> dict[str, str]:
    return {"kind": entity.kind, "value": entity.value}
