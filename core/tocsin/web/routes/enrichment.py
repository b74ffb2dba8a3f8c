"""Endpoint for the enrichment of an incident."""

from __future__ import annotations

import asyncio
from typing import Any

from sqlalchemy import Connection

from tocsin import audit
from tocsin.credentials import ConsoleRole, Scope
from tocsin.enrichment import (
    EnrichmentChanges,
    EnrichmentDifference,
    EntityEnrichmentChange,
    UnansweredEntity,
)
from tocsin.model import Enrichment, Entity
from tocsin.web.context import (
    MAX_CONCURRENT_ENRICHMENTS,
    ApiServices,
    Endpoint,
    RequestContext,
    Response,
)
from tocsin.web.dispatch import build_audit_entry, record_action
from tocsin.web.record_problems import ENRICHMENT_TOO_SLOW, INCIDENT_NOT_FOUND, TOO_MANY_ENRICHMENTS
from tocsin.web.routes.incidents import parse_number
from tocsin.web.schemas.enrichment import IncidentEnrichment

ACTION = "incident.enrich"

LONGEST = 60
"""Maximum duration of the enrichment of an incident, in seconds."""


async def enrich_incident(call: RequestContext) -> Response:
    """Query every enricher about the incident's entities, and return the results and changes."""
    number = parse_number(call.path["number"])
    found = await _enrich(call.services, number) if number else None
    if found is None:
        raise INCIDENT_NOT_FOUND.error()
    changes = [_change(change) for change in found.changes]
    changed = sum(change["difference"] != EnrichmentDifference.SAME for change in changes)
    await call.services.database.write(_record, call, changed)
    return Response(
        {
            "incident_number": found.number,
            "changed": changed,
            "enrichments": changes,
            "skipped": [_unanswered(reply) for reply in found.skipped],
            "failed": [_unanswered(reply) for reply in found.failed],
            "passed_over": found.passed_over,
        }
    )


async def _enrich(services: ApiServices, number: int) -> EnrichmentChanges | None:
    """Return the enrichment; raises ProblemError (503) at the limit or after the timeout."""
    if services.enrichments.locked():
        raise TOO_MANY_ENRICHMENTS.error(_RETRY, count=MAX_CONCURRENT_ENRICHMENTS)
    async with services.enrichments:
        try:
            async with asyncio.timeout(LONGEST):
                return await services.enricher.enrich(number)
        except TimeoutError:
            raise ENRICHMENT_TOO_SLOW.error(_RETRY, seconds=LONGEST) from None


_RETRY = {"Retry-After": "10"}


def _record(connection: Connection, call: RequestContext, changed: int) -> None:
    record_action(connection, call.services, _entry(call, changed))


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
        "entity": identify_entity(change.entity),
        "enricher": change.enricher,
        "difference": change.difference,
        "enrichment": change.enrichment and represent_enrichment(change.enrichment),
    }


def represent_enrichment(enrichment: Enrichment) -> dict[str, Any]:
    """Return the JSON of an enrichment."""
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
        "entity": identify_entity(unanswered.entity),
        "enricher": unanswered.enricher,
        "outcome": unanswered.outcome,
        "reason": unanswered.reason,
    }


def identify_entity(entity: Entity) -> dict[str, str]:
    """Return the JSON that identifies an entity."""
    return {"kind": entity.kind, "value": entity.value}


ENDPOINTS = (
    Endpoint(
        method="POST",
        path="/api/v1/incidents/{number}/enrich",
        access=Scope.INVESTIGATIONS_WRITE,
        summary="Enrich an incident's entities",
        handler=enrich_incident,
        role=ConsoleRole.ANALYST,
        response=IncidentEnrichment,
        problems=(INCIDENT_NOT_FOUND, TOO_MANY_ENRICHMENTS, ENRICHMENT_TOO_SLOW),
    ),
)
