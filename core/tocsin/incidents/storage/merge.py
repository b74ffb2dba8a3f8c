"""Merging of incident versions with each other and with the stored incident, in memory."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from tocsin.incidents.documents import StoredEntity
from tocsin.incidents.storage.normalize import ENTITIES, clean_incident
from tocsin.model import Alert, Entity, Incident, sort_tactics


def fold_versions(page: Iterable[Incident]) -> dict[str, Incident]:
    """Merge the versions in a page into one incident per `external_id`."""
    folded: dict[str, Incident] = {}
    for version in map(clean_incident, page):
        known = folded.get(version.external_id)
        folded[version.external_id] = version if known is None else combine_versions(known, version)
    return folded


def merge_parts(parts: Iterable[Mapping[str, Incident]]) -> dict[str, Incident]:
    """Merge what `fold_versions` returns for several pages, the oldest first."""
    merged: dict[str, Incident] = {}
    for part in parts:
        for name, version in part.items():
            known = merged.get(name)
            merged[name] = version if known is None else combine_versions(known, version)
    return merged


def combine_versions(known: Incident, version: Incident) -> Incident:
    """Merge two versions: the newest texts, all entities and alerts."""
    newest = known if is_older(version.changed_at, known.changed_at) else version
    return replace(
        newest,
        occurred_at=min(known.occurred_at, version.occurred_at),
        techniques=tuple(sorted({*known.techniques, *version.techniques})),
        tactics=tuple(sort_tactics([*known.tactics, *version.tactics])),
        entities=tuple(dict.fromkeys((*known.entities, *version.entities))),
        sources=tuple(dict.fromkeys((*known.sources, *version.sources))),
        targets=tuple(dict.fromkeys((*known.targets, *version.targets))),
        alerts=(*known.alerts, *version.alerts),
        only_if_stored=known.only_if_stored and version.only_if_stored,
    )


def is_older(version: datetime | None, known: datetime | None) -> bool:
    """Return whether a version is older than the known one; False if a time is missing."""
    return version is not None and known is not None and version < known


def build_columns(incident: Incident) -> dict[str, Any]:
    """Return the columns of the table `incidents` for a version."""
    return {
        "external_number": incident.external_number,
        "title": incident.title,
        "description": incident.description,
        "severity": incident.severity.value,
        "raw_severity": incident.raw_severity,
        "severity_assumed": incident.severity_assumed,
        "status": incident.status.value,
        "raw_status": incident.raw_status,
        "merged_into": incident.merged_into,
        "source_url": incident.source_url,
        "source_changed_at": incident.changed_at,
        "occurred_at": incident.occurred_at,
        "techniques": sorted(set(incident.techniques)),
        "tactics": sort_tactics(incident.tactics),
    }


def merge_columns(stored: Mapping[str, Any], version: Incident) -> dict[str, Any]:
    """Return the columns after merging `version` into the stored incident."""
    kept = {name: stored[name] for name in build_columns(version)}
    latest = (
        kept
        if is_older(version.changed_at, stored["source_changed_at"])
        else build_columns(version)
    )
    return {
        **latest,
        "source_changed_at": latest["source_changed_at"] or stored["source_changed_at"],
        "occurred_at": min(stored["occurred_at"], version.occurred_at),
        "techniques": sorted({*stored["techniques"], *version.techniques}),
        "tactics": sort_tactics([*stored["tactics"], *version.tactics]),
    }


class EntityRole(StrEnum):
    """Role of an entity in an incident."""

    SOURCE = "source"
    TARGET = "target"
    BOTH = "both"


IDENTITY = ("number", "provider", "external_id")


@dataclass(frozen=True, slots=True)
class RemovedIncident:
    """What remains of an incident that retention removed."""

    number: int
    alert_outcome: str
    created_at: datetime
    updated_at: datetime

    def describe(self) -> dict[str, object]:
        """Return what messages say about it."""
        date = self.updated_at.date().isoformat()
        return {"number": self.number, "date": date, "outcome": self.alert_outcome}


@dataclass(slots=True)
class IncidentChange:
    """An incident of a page, its stored version, and the difference."""

    incident: Incident
    stored: Mapping[str, Any] | None
    known_entities: list[Entity] = field(default_factory=list)
    known_roles: Mapping[Entity, EntityRole | None] = field(default_factory=dict)
    """The stored roles of stored entities."""
    entities: list[Entity] = field(default_factory=list)
    roles: dict[Entity, EntityRole] = field(default_factory=dict)
    """The roles of new entities, and of stored ones whose role has changed."""
    alerts: list[Alert] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    removed: RemovedIncident | None = None
    """What is left of a new incident that was stored before."""

    @property
    def alert_outcome(self) -> str | None:
        """The alert outcome of an incident that was stored before."""
        if self.stored is not None:
            return str(self.stored["alert_outcome"])
        return None if self.removed is None else self.removed.alert_outcome

    @property
    def alert_count(self) -> int:
        """The number of alerts with the new ones."""
        return (self.stored["alert_count"] if self.stored else 0) + len(self.alerts)

    @property
    def identity(self) -> dict[str, Any]:
        """The constant columns of a stored incident; empty for a new one."""
        return {name: self.stored[name] for name in IDENTITY} if self.stored else {}

    @property
    def is_changed(self) -> bool:
        """Whether the page changes a stored incident."""
        if self.stored is None:
            return False
        differs = any(self.stored[name] != value for name, value in self.values.items())
        return differs or bool(self.entities) or bool(self.alerts) or bool(self.roles)

    @property
    def changed_roles(self) -> dict[Entity, EntityRole]:
        """The new roles of stored entities."""
        stored = set(self.known_entities)
        return {entity: role for entity, role in self.roles.items() if entity in stored}

    def named_entities(self) -> Iterator[StoredEntity]:
        """Yield the kind, value and role of each of its entities, the stored ones first."""
        for entity in (*self.known_entities, *self.entities):
            role = self.roles.get(entity) or self.known_roles.get(entity)
            yield entity.kind.value, entity.value, role and role.value

    def entity_rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows of its new entities."""
        since = {"incident_number": self.values["number"], "change": self.values["change"]}
        for entity in self.entities:
            role = self.roles.get(entity)
            named = {"kind": entity.kind.value, "value": entity.value}
            yield {**since, **named, "role": role and role.value}

    def technique_rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows of its new techniques."""
        known = self.stored["techniques"] if self.stored else ()
        for technique in self.values["techniques"]:
            if technique not in known:
                yield {"incident_number": self.values["number"], "technique": technique}

    def alert_rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows of its new alerts."""
        for alert in self.alerts:
            yield {
                "incident_number": self.values["number"],
                "external_id": alert.external_id,
                "title": alert.title,
                "severity": alert.severity.value,
                "occurred_at": alert.occurred_at,
                "rule": alert.rule,
                "flow": alert.flow and asdict(alert.flow),
                "record": alert.record,
            }


def compare_versions(
    incident: Incident,
    row: Mapping[str, Any] | None,
    entities: Mapping[Entity, EntityRole | None],
    alerts: Container[str],
) -> IncidentChange:
    """Return the change that a version makes to an incident, with the parts that are not stored.

    `row`, `entities` with their roles, and `alerts` are what is stored of it.
    """
    new_entities = [entity for entity in incident.entities if entity not in entities]
    new_entities = new_entities[: ENTITIES - len(entities)]
    unique = {alert.external_id: alert for alert in incident.alerts}
    return IncidentChange(
        incident,
        row,
        values=build_columns(incident) if row is None else merge_columns(row, incident),
        known_entities=list(entities),
        known_roles=entities,
        entities=new_entities,
        roles=dict(_find_new_roles(incident, {**dict.fromkeys(new_entities), **entities})),
        alerts=[alert for name, alert in unique.items() if name not in alerts],
    )


def _find_new_roles(
    incident: Incident, known: Mapping[Entity, EntityRole | None]
) -> Iterator[tuple[Entity, EntityRole]]:
    """Yield the roles that are not stored yet; an entity that has had both keeps both.

    `known` are the entities that are stored or will be, with the role that is stored.
    """
    sources, targets = set(incident.sources), set(incident.targets)
    for entity in sorted((sources | targets) & known.keys(), key=lambda entity: entity.value):
        before = known[entity]
        is_source = entity in sources or before in (EntityRole.SOURCE, EntityRole.BOTH)
        is_target = entity in targets or before in (EntityRole.TARGET, EntityRole.BOTH)
        role = EntityRole.SOURCE if is_source else EntityRole.TARGET
        role = EntityRole.BOTH if is_source and is_target else role
        if role is not before:
            yield entity, role
