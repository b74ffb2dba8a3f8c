"""Endpoint for the context of an incident: its alerts, its entities and related incidents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection

from tocsin import knowledge
from tocsin.clock import isoformat, isoformat_or_none
from tocsin.credentials import Scope
from tocsin.model import IncidentRecord, Sighting
from tocsin.web.context import Endpoint, RequestContext, Response
from tocsin.web.record_problems import INCIDENT_NOT_FOUND
from tocsin.web.routes.enrichment import identify_entity, represent_enrichment
from tocsin.web.routes.incidents import parse_number
from tocsin.web.schemas.incident_context import IncidentContext

_MOST_ENTITIES = 60


def get_incident_context(connection: Connection, call: RequestContext) -> Response:
    """Return an incident's alerts and entities, and the incidents that are related to it."""
    number, services = parse_number(call.path["number"]), call.services
    found = knowledge.load_incidents(connection, [number], services.markings) if number else []
    if not found:
        raise INCIDENT_NOT_FOUND.error()
    [incident] = found
    entities = incident.entities[:_MOST_ENTITIES]
    sightings = knowledge.find_sightings(connection, entities, services.environment)
    enriched = services.enricher.load_stored(connection, entities)
    related = knowledge.find_related_incidents(connection, incident.number, sightings)
    return Response(
        {
            "alerts": [
                {
                    "external_id": alert.external_id,
                    "title": alert.title,
                    "severity": alert.severity,
                    "occurred_at": isoformat(alert.occurred_at),
                    "rule": alert.rule,
                }
                for alert in incident.alerts
            ],
            "alerts_total": incident.alert_count,
            "entities": [
                _represent_entity(incident, each, enriched.get(each.entity, {}))
                for each in sightings
            ],
            "entities_total": len(incident.entities),
            "related": [_represent_related(each) for each in related],
        }
    )


def _represent_entity(
    incident: IncidentRecord, sighting: Sighting, enriched: Mapping[str, Any]
) -> dict[str, Any]:
    entity = sighting.entity
    is_source, is_target = entity in incident.sources, entity in incident.targets
    roles = {(True, True): "both", (True, False): "source", (False, True): "target"}
    return {
        **identify_entity(entity),
        "role": roles.get((is_source, is_target)),
        "incident_count": sighting.incident_count,
        "first_seen": isoformat_or_none(sighting.first_seen),
        "last_seen": isoformat_or_none(sighting.last_seen),
        "is_internal": sighting.internal,
        "is_well_known": sighting.well_known,
        "enrichments": [
            {
                "enricher": name,
                "fetched_at": isoformat(kept.fetched_at),
                "enrichment": represent_enrichment(kept.enrichment),
            }
            for name, kept in enriched.items()
        ],
    }


def _represent_related(related: knowledge.RelatedIncident) -> dict[str, Any]:
    return {
        "number": related.number,
        "title": related.title,
        "severity": related.severity,
        "status": related.status,
        "occurred_at": isoformat(related.occurred_at),
        "is_linked": related.is_linked,
        "is_merged": related.is_merged,
        "shared_entities": [identify_entity(entity) for entity in related.shared],
    }


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/api/v1/incidents/{number}/context",
        access=Scope.INCIDENTS_READ,
        summary="Get an incident's alerts and entities, and related incidents",
        handler=get_incident_context,
        response=IncidentContext,
        problems=(INCIDENT_NOT_FOUND,),
    ),
)
