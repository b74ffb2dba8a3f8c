"""Schemas of an incident's context: its alerts, its entities, and related incidents."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from pydantic import Field

from tocsin.model import IncidentStatus, Json, Severity
from tocsin.web.parsing import ResponseModel
from tocsin.web.schemas.enrichment import EntityEnrichment
from tocsin.web.schemas.examples import CREATED
from tocsin.web.schemas.incidents import EntityItem, IncidentAlert, IncidentEntity


class StoredEnrichment(ResponseModel):
    """An enricher's last result for an entity."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"enricher": "abuseipdb", "fetched_at": CREATED}

    enricher: str
    fetched_at: datetime
    enrichment: EntityEnrichment


class SightedEntity(IncidentEntity):
    """An entity of an incident, with what Tocsin has stored about it."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"incident_count": 4, "is_internal": False}

    incident_count: int = Field(description="Number of incidents with the entity.")
    first_seen: datetime | None
    last_seen: datetime | None
    is_internal: bool = Field(description="Whether the entity belongs to your organization.")
    is_well_known: bool = Field(
        description="Whether the entity is well known, and therefore insignificant."
    )
    enrichments: list[StoredEnrichment]


class RelatedIncidentItem(ResponseModel):
    """An incident that is related to another incident."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "number": 4698,
        "title": "Many failed sign-ins",
        "severity": "Medium",
        "is_linked": False,
        "is_merged": False,
    }

    number: int
    title: str
    severity: Severity
    status: IncidentStatus
    occurred_at: datetime
    is_linked: bool = Field(description="Whether the incidents are linked.")
    is_merged: bool = Field(description="Whether the SIEM merged the incidents.")
    shared_entities: list[EntityItem] = Field(description="Shared entities, rarest first.")


class IncidentContext(ResponseModel):
    """An incident's alerts, its entities, and related incidents."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"alerts_total": 2, "entities_total": 2}

    alerts: list[IncidentAlert] = Field(description="The latest alerts, in chronological order.")
    alerts_total: int
    entities: list[SightedEntity]
    entities_total: int
    related: list[RelatedIncidentItem]
