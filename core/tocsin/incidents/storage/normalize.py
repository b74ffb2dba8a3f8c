"""Validation and length limits of incidents."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from operator import is_
from typing import Any, TypeVar

import orjson

from tocsin.json_codec import parse_json
from tocsin.model import (
    Alert,
    Entity,
    EntityKind,
    Incident,
    IncidentStatus,
    NetworkFlow,
    Received,
    Rejected,
    Severity,
    parse_tactics,
)
from tocsin.store import clean_identifier, clean_text

TITLE = 1_000
DESCRIPTION = 65_536
WORD = 200
IDENTIFIER = 500
ALERT_IDENTIFIER = 200
ADDRESS = 4_096
TECHNIQUES = 100
ENTITIES = 1_000  # per incident; a scan of a whole network would name many more
# PostgreSQL index rows hold 2,704 bytes
ENTITY_BYTES = 2_000
RECORD = 32_768  # bytes of JSON
_FLOW_TEXTS = ("source", "target", "protocol", "direction")


def identify(incident: Incident) -> str | None:
    """Return the stored form of an incident's ID, None for the wrong type of a faulty plugin."""
    name = getattr(incident, "external_id", None)
    return clean_identifier(name, IDENTIFIER) if isinstance(name, str) else None


def _clean_entity(entity: Entity) -> Entity:
    value = clean_text(entity.value, ENTITY_BYTES)
    if value is entity.value:
        return entity
    return Entity(entity.kind, value.encode()[:ENTITY_BYTES].decode("utf-8", "ignore"))


def clean_entities(entities: Iterable[Entity]) -> tuple[Entity, ...]:
    """Return the non-empty entities, each once, in their original order."""
    cleaned = dict.fromkeys(map(_clean_entity, entities))
    return tuple(entity for entity in cleaned if entity.value)


def _clean_alert(alert: Alert) -> Alert:
    external_id = clean_identifier(alert.external_id, ALERT_IDENTIFIER)
    title = clean_text(alert.title, TITLE)
    rule = clean_text(alert.rule, TITLE) or None
    flow = alert.flow and _clean_flow(alert.flow)
    cleaned = (external_id, title, rule, flow)
    if all(map(is_, cleaned, (alert.external_id, alert.title, alert.rule, alert.flow))):
        return alert
    return replace(alert, external_id=external_id, title=title, rule=rule, flow=flow)


def _clean_flow(flow: NetworkFlow) -> NetworkFlow:
    cleaned = replace(flow, **{name: clean_text(getattr(flow, name), WORD) for name in _FLOW_TEXTS})
    return flow if cleaned == flow else cleaned


_Received = TypeVar("_Received", bound=Received)


def limit_records(received: _Received, *, are_stored: bool) -> _Received:
    """Return `received` with the records of alerts that can be stored, None for the others.

    This comes before anything else that walks through the records, which may be long and deep.
    What has a wrong type stays, to be rejected.
    """
    kept = [_limit_incident(incident, are_stored=are_stored) for incident in received.incidents]
    return replace(received, incidents=tuple(kept))


def _limit_incident(incident: Any, *, are_stored: bool) -> Any:
    if not isinstance(incident, Incident) or not isinstance(incident.alerts, tuple | list):
        return incident
    alerts = [_limit_alert(alert, is_stored=are_stored) for alert in incident.alerts]
    if all(map(is_, alerts, incident.alerts)):
        return incident
    return replace(incident, alerts=tuple(alerts))


def _limit_alert(alert: Any, *, is_stored: bool) -> Any:
    if not isinstance(alert, Alert) or not isinstance(alert.record, Mapping):
        return alert
    record = _clean_record(alert.record) if is_stored else None
    return alert if record is alert.record else replace(alert, record=record)


def _clean_record(record: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return a record that can be stored, None for one that is too long or nested too deeply."""
    try:
        length = len(orjson.dumps(record))
    except (TypeError, ValueError):  # a lone surrogate, or a value that JSON does not have
        try:
            record = parse_json(json.dumps(record, default=_to_json, skipkeys=True).encode())
            length = len(orjson.dumps(record))
        except (TypeError, ValueError, RecursionError):
            return None
    return record if length <= RECORD else None


def _to_json(value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else str(value)


def clean_incident(incident: Incident) -> Incident:
    """Return the incident with every field within its limit."""
    return replace(
        incident,
        external_id=clean_identifier(incident.external_id, IDENTIFIER),
        external_number=clean_text(incident.external_number, WORD),
        title=clean_text(incident.title, TITLE) or "(no title)",
        description=clean_text(incident.description, DESCRIPTION),
        raw_severity=clean_text(incident.raw_severity, WORD),
        raw_status=clean_text(incident.raw_status, WORD),
        merged_into=incident.merged_into and clean_identifier(incident.merged_into, IDENTIFIER),
        source_url=clean_text(incident.source_url, ADDRESS),
        techniques=tuple(clean_text(name, WORD) for name in incident.techniques[:TECHNIQUES]),
        tactics=tuple(parse_tactics(incident.tactics[:TECHNIQUES])),
        entities=clean_entities((*incident.entities, *incident.sources, *incident.targets)),
        sources=clean_entities(incident.sources),
        targets=clean_entities(incident.targets),
        alerts=tuple(map(_clean_alert, incident.alerts)),
    )


_TEXTS = ("external_id", "title", "description")
_OPTIONAL_TEXTS = ("external_number", "raw_severity", "raw_status", "merged_into", "source_url")


def reject_invalid(source: str, received: _Received) -> _Received:
    """Return `received` with its invalid incidents moved to the rejected records."""
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
        location=f"incident {place} on its page",
        reason=f"the plugin returned an invalid incident: {reason}",
        content=repr(incident).encode("utf-8", "backslashreplace"),
    )


def _check_types(incident: Incident) -> None:
    """Raise ValueError for values of a wrong type, since plugins are not type-checked."""
    _require(incident, Incident, "the incident")
    _require_members(incident, str, _TEXTS)
    _require_members(incident, str | None, _OPTIONAL_TEXTS)
    _require(incident.severity, Severity, "severity")
    _require_members(incident, bool, ("severity_assumed", "only_if_stored"))
    _require(incident.status, IncidentStatus, "status")
    _require_moment(incident.occurred_at, "occurred_at")
    if incident.changed_at is not None:
        _require_moment(incident.changed_at, "changed_at")
    for technique in _require_sequence(incident.techniques, "techniques"):
        _require(technique, str, "a technique")
    for tactic in _require_sequence(incident.tactics, "tactics"):
        _require(tactic, str, "a tactic")
    for name in ("entities", "sources", "targets"):
        for entity in _require_sequence(getattr(incident, name), name):
            _require(entity, Entity, f"one of the {name}")
            _require(entity.kind, EntityKind, f"the kind of one of the {name}")
    for alert in _require_sequence(incident.alerts, "alerts"):
        _require(alert, Alert, "an alert")
        _require_members(alert, str, ("external_id", "title"))
        _require(alert.rule, str | None, "an alert's rule")
        _require(alert.severity, Severity, "an alert's severity")
        _require_moment(alert.occurred_at, "an alert's occurred_at")
        _require(alert.record, Mapping | None, "an alert's record")
        _require(alert.flow, NetworkFlow | None, "an alert's flow")
        if alert.flow is not None:
            _require_members(alert.flow, str | None, _FLOW_TEXTS)
            _require_members(alert.flow, int | None, ("source_port", "target_port"))


def _require_members(whole: object, kind: Any, names: Iterable[str]) -> None:
    for name in names:
        _require(getattr(whole, name), kind, name)


def _require(value: object, kind: Any, what: str) -> None:
    if not isinstance(value, kind):
        expected = kind.__name__ if isinstance(kind, type) else str(kind).replace(" | ", " or ")
        raise ValueError(  # noqa: TRY004 - a value from a plugin
            f"{what} must be of type {expected}, not {value!r:.100}"
        )


def _require_moment(value: object, what: str) -> None:
    if not isinstance(value, datetime) or value.utcoffset() is None:
        raise ValueError(f"{what} must be a time with a time zone, not {value!r:.100}")


def _require_sequence(values: Any, what: str) -> Iterable[Any]:
    _require(values, tuple | list, what)
    return values  # type: ignore[no-any-return]
