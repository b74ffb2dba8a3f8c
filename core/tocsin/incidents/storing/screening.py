"""Telling which incidents cannot be kept: a mistake of a plugin must not stop its feed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from tocsin.model import (
    Alert,
    Entity,
    EntityKind,
    Incident,
    IncidentStatus,
    Received,
    Rejected,
    Severity,
)

_Received = TypeVar("_Received", bound=Received)
_TEXTS = ("external_id", "title", "description")
_OPTIONAL_TEXTS = ("external_number", "raw_severity", "raw_status", "merged_into", "source_url")


def reject_invalid(source: str, received: _Received) -> _Received:
    """Return what was received, with the incidents that cannot be kept among the rejected."""
    kept: list[Incident] = []
    rejected: list[Rejected] = []
    for place, incident in enumerate(received.incidents, 1):
        try:
            _check_types(incident)
        except ValueError as error:
            rejected.append(_reject(source, place, incident, str(error)))
        else:
            kept.append(incident)
    if not rejected:
        return received
    return replace(received, incidents=tuple(kept), rejected=(*received.rejected, *rejected))


def _reject(source: str, place: int, incident: Any, reason: str) -> Rejected:
    return Rejected(
        source=source,
        location=f"incident {place} of what was read at once",
        reason=f"the plugin made an incident that cannot be kept: {reason}",
        content=repr(incident).encode("utf-8", "backslashreplace"),
    )


def _check_types(incident: Incident) -> None:
    """Raise ValueError for what types would not let through, if plugins were held to them."""
    _require(incident, Incident, "the incident")
    _require_members(incident, str, _TEXTS)
    _require_members(incident, str | None, _OPTIONAL_TEXTS)
    _require(incident.severity, Severity, "severity")
    _require(incident.severity_assumed, bool, "severity_assumed")
    _require(incident.status, IncidentStatus, "status")
    _require_moment(incident.occurred_at, "occurred_at")
    if incident.changed_at is not None:
        _require_moment(incident.changed_at, "changed_at")
    for technique in _require_sequence(incident.techniques, "techniques"):
        _require(technique, str, "a technique")
    for entity in _require_sequence(incident.entities, "entities"):
        _require(entity, Entity, "an entity")
        _require(entity.kind, EntityKind, "an entity's kind")
    for alert in _require_sequence(incident.alerts, "alerts"):
        _require(alert, Alert, "an alert")
        _require_members(alert, str, ("external_id", "title"))
        _require(alert.severity, Severity, "an alert's severity")
        _require_moment(alert.occurred_at, "an alert's occurred_at")


def _require_members(whole: object, kind: Any, names: Iterable[str]) -> None:
    for name in names:
        _require(getattr(whole, name), kind, name)


def _require(value: object, kind: Any, what: str) -> None:
    if not isinstance(value, kind):
        raise ValueError(f"{what} is {value!r:.100}")  # noqa: TRY004 - a value of the far side


def _require_moment(value: object, what: str) -> None:
    if not isinstance(value, datetime) or value.utcoffset() is None:
        raise ValueError(f"{what} is {value!r:.100}, not a time with its zone")


def _require_sequence(values: Any, what: str) -> Iterable[Any]:
    _require(values, tuple | list, what)
    return values  # type: ignore[no-any-return]
