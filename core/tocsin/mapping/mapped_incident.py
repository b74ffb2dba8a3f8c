"""Schema of a mapped incident."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from tocsin.model import (
    Alert,
    Entity,
    EntityKind,
    Incident,
    IncidentStatus,
    Severity,
    Vocabulary,
)

VocabularyT = TypeVar("VocabularyT", bound=Vocabulary)


def _none_if_empty(value: Any) -> Any:
    return None if value == "" else value


def _to_utc(moment: datetime) -> datetime:
    try:
        return moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
    except OverflowError:
        raise ValueError("use a valid calendar time") from None


def _drop_nulls(values: Any) -> Any:
    """Return a list without null items; an empty list for null."""
    if values is None:
        return []
    if isinstance(values, list):
        return [value for value in values if value is not None]
    return values


def _parse_kind(word: Any) -> Any:
    return EntityKind.parse(word) if isinstance(word, str) else word


def _drop_unsafe_url(url: str) -> str | None:
    return url if url.startswith(("http://", "https://")) else None


Name = Annotated[str, Field(min_length=1)]
Text = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]
Sparse = BeforeValidator(_drop_nulls)
Optional = BeforeValidator(_none_if_empty)
Moment = Annotated[Annotated[datetime, AfterValidator(_to_utc)] | None, Optional]
"""ISO 8601, or seconds or milliseconds since 1970; UTC if it has no time zone."""
Link = Annotated[Annotated[str, AfterValidator(_drop_unsafe_url)] | None, Optional]
"""An http or https URL; anything else is dropped, since people follow these links."""


class _MappedModel(BaseModel):
    model_config = ConfigDict(extra="forbid", coerce_numbers_to_str=True)


class MappedEntity(_MappedModel):
    """An entity; entities without a value are dropped."""

    kind: Annotated[EntityKind, BeforeValidator(_parse_kind)]
    value: Text
    role: Annotated[Literal["source", "target"] | None, Optional] = None
    """Whether the activity came from it, or was directed at it."""


class MappedAlert(_MappedModel):
    """A detection in an incident, which provides missing severity and time."""

    external_id: Name
    title: Text = ""
    severity: str | None = None
    occurred_at: Moment = None
    rule: Annotated[str | None, Optional] = None


class MappedIncident(_MappedModel):
    """An incident rendered by a mapping."""

    external_id: Name
    title: Text = ""
    severity: str | None = None
    raw_severity: str | None = None
    status: str | None = None
    raw_status: str | None = None
    occurred_at: Moment = None
    changed_at: Moment = None
    description: Text = ""
    external_number: Annotated[str | None, Optional] = None
    merged_into: Annotated[str | None, Optional] = None
    source_url: Link = None
    techniques: Annotated[list[str], Sparse] = []
    tactics: Annotated[list[str], Sparse] = []
    entities: Annotated[list[MappedEntity], Sparse] = []
    alerts: Annotated[list[MappedAlert], Sparse] = []

    def incident(self, now: datetime) -> Incident:
        """Return the incident; without a time it occurred `now`.

        An unknown severity becomes Medium, marked as assumed; an unknown status becomes New.
        """
        severity = _parse_or_none(Severity, self.severity)
        occurred_at = self.occurred_at or now
        return Incident(
            external_id=self.external_id,
            external_number=self.external_number,
            title=self.title,
            description=self.description,
            severity=severity or Severity.MEDIUM,
            raw_severity=self.raw_severity or self.severity or None,
            severity_assumed=severity is None,
            status=_parse_or_none(IncidentStatus, self.status) or IncidentStatus.NEW,
            raw_status=self.raw_status or self.status or None,
            merged_into=self.merged_into,
            source_url=self.source_url,
            occurred_at=occurred_at,
            changed_at=self.changed_at,
            techniques=tuple(filter(None, self.techniques)),
            tactics=tuple(filter(None, self.tactics)),
            entities=self._list_entities(),
            sources=self._list_entities("source"),
            targets=self._list_entities("target"),
            alerts=tuple(_to_alert(one, severity, occurred_at) for one in self.alerts),
        )

    def _list_entities(self, role: str | None = None) -> tuple[Entity, ...]:
        """Return the entities with a role, or all of them."""
        given = (one for one in self.entities if one.value and role in (None, one.role))
        return tuple(Entity(one.kind, one.value) for one in given)


def _to_alert(alert: MappedAlert, severity: Severity | None, occurred_at: datetime) -> Alert:
    return Alert(
        external_id=alert.external_id,
        title=alert.title,
        severity=_parse_or_none(Severity, alert.severity) or severity or Severity.MEDIUM,
        occurred_at=alert.occurred_at or occurred_at,
        rule=alert.rule,
    )


def _parse_or_none(vocabulary: type[VocabularyT], word: str | None) -> VocabularyT | None:
    """Return the member of a vocabulary, None for an unknown word."""
    try:
        return vocabulary.parse(word or "")
    except ValueError:
        return None
