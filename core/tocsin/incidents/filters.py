"""Filters of the incident list by what the SIEM reports."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, or_, select

from tocsin.model import Entity, EntityKind
from tocsin.store.tables import incident_entities, incident_techniques, incidents

_i, _e, _t = incidents.c, incident_entities.c, incident_techniques.c


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentFilter:
    """Conditions for incidents by their content; None for any."""

    provider: str | None = None
    title: str | None = None
    """Part of the title, in any case."""
    entity: str | None = None
    """Value of an entity of any kind, in any spelling."""
    technique: str | None = None
    """ATT&CK technique ID, including its sub-techniques."""
    occurred_since: datetime | None = None
    occurred_until: datetime | None = None

    def list_conditions(self) -> Iterator[ColumnElement[bool]]:
        """Yield the conditions for rows of `incidents`."""
        if self.provider is not None:
            yield _i.provider == self.provider
        if self.title is not None:
            yield _i.title.icontains(self.title, autoescape=True)
        if self.entity is not None:
            spellings = {Entity(kind, self.entity).value for kind in EntityKind}
            is_such = _e.value.in_(sorted(spellings))
            yield _i.number.in_(select(_e.incident_number).where(is_such))
        if self.technique is not None:
            is_sub_technique = _t.technique.startswith(f"{self.technique}.", autoescape=True)
            is_wanted = or_(_t.technique == self.technique, is_sub_technique)
            yield _i.number.in_(select(_t.incident_number).where(is_wanted))
        if self.occurred_since is not None:
            yield _i.occurred_at >= self.occurred_since
        if self.occurred_until is not None:
            yield _i.occurred_at < self.occurred_until
