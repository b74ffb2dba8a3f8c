"""Cases of Example, and their conversion to incidents."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field, model_validator

from tocsin import Entity, EntityKind, Incident, IncidentStatus, Severity

SEVERITIES = {
    "info": Severity.INFORMATIONAL,
    "low": Severity.LOW,
    "medium": Severity.MEDIUM,
    "high": Severity.HIGH,
    "critical": Severity.CRITICAL,
}
STATUSES = {
    "open": IncidentStatus.NEW,
    "in_progress": IncidentStatus.ACTIVE,
    "closed": IncidentStatus.CLOSED,
    "merged": IncidentStatus.CLOSED,
}
WRITTEN = {
    IncidentStatus.NEW: "open",
    IncidentStatus.ACTIVE: "in_progress",
    IncidentStatus.CLOSED: "closed",
}
ENTITIES = {
    "ip": EntityKind.IP,
    "host": EntityKind.HOST,
    "user": EntityKind.USER,
    "domain": EntityKind.DOMAIN,
}


def _in_utc_if_unsaid(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


Moment = Annotated[datetime, AfterValidator(_in_utc_if_unsaid)]


class Record(BaseModel):
    """A record of Example; null and missing members are unknown."""

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, members: Any) -> Any:
        if not isinstance(members, Mapping):
            return members
        return {name: value for name, value in members.items() if value is not None}


class Observable(Record):
    """An observable of a case."""

    type: str = ""
    value: str = ""


class Case(Record):
    """A case; id and times are required, because they identify the case."""

    id: str = Field(min_length=1)
    created_at: Moment
    changed_at: Moment
    number: int | None = None
    title: str = ""
    description: str = ""
    severity: str = ""
    status: str = ""
    merged_into: str | None = None
    entities: tuple[Observable, ...] = ()


def incident_of(record: Mapping[str, Any], server: str) -> Incident:
    """Return the incident of a case on this server.

    Raises ValueError for malformed records. Operators see its text and, for pydantic's errors, each
    field with its error, such as `created_at: Field required`.
    """
    case = Case.model_validate(record)
    severity = SEVERITIES.get(case.severity.lower())
    return Incident(
        external_id=case.id,
        external_number=None if case.number is None else str(case.number),
        title=case.title,
        description=case.description,
        severity=severity or Severity.MEDIUM,
        severity_assumed=severity is None,
        raw_severity=case.severity or None,
        status=STATUSES.get(case.status.lower(), IncidentStatus.NEW),
        raw_status=case.status or None,
        merged_into=case.merged_into,
        occurred_at=case.created_at,
        changed_at=case.changed_at,
        source_url=None if case.number is None else f"{server}/cases/{case.number}",
        entities=tuple(
            Entity(ENTITIES[entity.type], entity.value)
            for entity in case.entities
            if entity.type in ENTITIES and entity.value
        ),
    )
