"""Making one incident of its several versions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from tocsin.incidents.storing.bounds import clean_incident
from tocsin.model import Incident


def fold_versions(page: Iterable[Incident]) -> dict[str, Incident]:
    """Return one incident per `external_id`, made of all its versions in a page."""
    folded: dict[str, Incident] = {}
    for version in map(clean_incident, page):
        known = folded.get(version.external_id)
        folded[version.external_id] = version if known is None else combine_versions(known, version)
    return folded


def combine_versions(known: Incident, version: Incident) -> Incident:
    """Return one incident of two versions: the newest words, all entities and alerts."""
    newest = known if is_older(version.changed_at, known.changed_at) else version
    return replace(
        newest,
        occurred_at=min(known.occurred_at, version.occurred_at),
        techniques=tuple(sorted({*known.techniques, *version.techniques})),
        entities=tuple(dict.fromkeys((*known.entities, *version.entities))),
        alerts=(*known.alerts, *version.alerts),
    )


def is_older(version: datetime | None, known: datetime | None) -> bool:
    """Return whether a version is older than the known one; False where a time is not known."""
    return version is not None and known is not None and version < known


def build_columns(incident: Incident) -> dict[str, Any]:
    """Return what the table `incidents` keeps of a version."""
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
    }


def merge_columns(stored: Mapping[str, Any], version: Incident) -> dict[str, Any]:
    """Return the columns once `version` is merged into what is stored."""
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
    }
