"""Mapping of documents in the Elastic Common Schema to incidents and events.

https://www.elastic.co/docs/reference/ecs/ecs-field-reference, and for alerts of Elastic Security
https://www.elastic.co/docs/reference/security/fields-and-object-schemas/alert-schema
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from tocsin import (
    Alert,
    Entity,
    EntityKind,
    Incident,
    IncidentStatus,
    Relation,
    RelationType,
    Severity,
    SiemEvent,
)
from tocsin_connectors.siem.files import name_alert, name_group
from tocsin_connectors.siem.indices.ecs_fields import find_ecs_techniques, find_log_entities
from tocsin_connectors.siem.records import (
    ECS_FLOW,
    EntityRoles,
    child,
    describe_value,
    filter_techniques,
    find_document_roles,
    find_flow,
    find_tactics,
    normalize_address,
    parse_utc,
    relate,
    text,
    text_at,
    union,
    value_at,
)

ALERT_KINDS = frozenset({"alert", "signal"})
"""Values of `event.kind`: alerts of sensors, and of rules of Elastic Security."""
_MAX_ENTITIES = 200
_SEVERITIES: Mapping[str, Severity] = {
    "informational": Severity.INFORMATIONAL,
    "low": Severity.LOW,
    "medium": Severity.MEDIUM,
    "high": Severity.HIGH,
    "critical": Severity.CRITICAL,
}
_SEVERITY_FIELDS = ("kibana.alert.severity", "kibana.alert.rule.severity", "rule.severity")
_MIN_RISKS = ((74, Severity.CRITICAL), (48, Severity.HIGH), (22, Severity.MEDIUM))
"""Lowest risk score of each severity, as in rules of Elastic Security."""
_RISK_FIELDS = ("kibana.alert.risk_score", "event.risk_score")
_NUMBERS: Mapping[str, Mapping[int, Severity]] = {
    "suricata": {1: Severity.HIGH, 2: Severity.MEDIUM, 3: Severity.LOW},
    "endpoint": {
        21: Severity.LOW,
        47: Severity.MEDIUM,
        73: Severity.HIGH,
        99: Severity.CRITICAL,
    },
}
"""Severities by `event.severity`, whose scale is that of the module."""
_STATUSES = {
    "open": IncidentStatus.NEW,
    "acknowledged": IncidentStatus.ACTIVE,
    "closed": IncidentStatus.CLOSED,
}
_TITLE_FIELDS = ("kibana.alert.rule.name", "rule.name", "rule.description", "event.action")
_RULE_FIELDS = ("kibana.alert.rule.name", "rule.name", "rule.id", "rule.uuid")
_GROUP_FIELDS = ("rule.id", "rule.uuid", "rule.name", "event.code", "event.action")
_PLACE_FIELDS = ("source.ip", "client.ip", "host.name", "host.hostname", "agent.name")
_TACTIC_FIELDS = (
    *("threat.tactic.id", "threat.tactic.name"),
    *("kibana.alert.rule.threat.tactic.id", "kibana.alert.rule.parameters.threat.tactic.id"),
)
_TECHNIQUE_PREFIXES = ("kibana.alert.rule", "kibana.alert.rule.parameters")
_IDENTITY_FIELDS = (
    *("source.ip", "source.port", "destination.ip", "destination.port", "host.name", "user.name"),
    *("process.entity_id", "process.pid", "network.community_id", "file.path", "message"),
)
_EVENT_FIELDS = (
    *("event.kind", "event.module", "event.dataset", "event.category", "event.action"),
    *("event.outcome", "rule.name", "message", "host.name", "user.name", "source.ip"),
    *("source.port", "destination.ip", "destination.port", "destination.domain"),
    *("network.transport", "network.protocol", "dns.question.name", "url.full"),
    *("process.executable", "process.command_line", "process.parent.executable", "file.path"),
    *("file.hash.sha256", "container.name", "orchestrator.resource.name", "cloud.instance.id"),
)
"""Fields that an analyst would look at."""
_MAX_TEXT_LENGTH = 500


def get_document(record: dict[str, Any]) -> dict[str, Any]:
    """Return the document of a line, which exports of an index wrap in `_source`."""
    return child(record, "_source") or record


def parse_time(document: dict[str, Any]) -> datetime:
    """Return the document's time. Raises ValueError if there is no valid one."""
    value = value_at(document, "@timestamp")
    if isinstance(value, str):
        return parse_utc(value)
    raise ValueError(f"@timestamp is {describe_value(value)}")


def build_incident(document: dict[str, Any], window: timedelta) -> Incident:
    """Return the incident of an alert.

    Alerts of Elastic Security have an ID; others are grouped by rule, source and clock interval.
    Raises ValueError if a valid time is missing.
    """
    at = parse_time(document)
    title = text_at(document, *_TITLE_FIELDS, "message") or "ECS alert"
    severity, raw = _parse_severity(document)
    status = text_at(document, "kibana.alert.workflow_status")
    identifier = text_at(document, "kibana.alert.uuid")
    started = text_at(document, "kibana.alert.original_time", "event.start")
    occurred_at = parse_utc(started) if identifier and started else at
    found = find_log_entities(document, _MAX_ENTITIES)
    roles = EntityRoles.merge([find_document_roles(document), found.roles])
    return Incident(
        external_id=identifier
        or name_group(
            at,
            window,
            text_at(document, *_GROUP_FIELDS) or title,
            _find_place(document),
        ),
        title=title,
        description=_describe(document, title),
        severity=severity or Severity.MEDIUM,
        raw_severity=raw,
        severity_assumed=severity is None,
        status=_STATUSES.get((status or "").casefold(), IncidentStatus.NEW),
        raw_status=status,
        occurred_at=occurred_at,
        changed_at=_parse_change(document, at) if identifier else None,
        source_url=_find_url(document),
        techniques=union([filter_techniques(_find_techniques(document))]),
        tactics=union([find_tactics(document, *_TACTIC_FIELDS)]),
        entities=found.entities,
        sources=roles.sources,
        targets=roles.targets,
        alerts=(
            Alert(
                external_id=identifier or _name_alert(document),
                title=title,
                severity=severity or Severity.MEDIUM,
                occurred_at=occurred_at,
                rule=text_at(document, *_RULE_FIELDS),
                flow=find_flow(document, ECS_FLOW),
                record=document,
            ),
        ),
    )


def _find_place(document: dict[str, Any]) -> str:
    place = text_at(document, *_PLACE_FIELDS) or "-"
    return normalize_address(place) or place


def _name_alert(document: dict[str, Any]) -> str:
    """Return the ID of an alert: that of its event, or else one of its content."""
    if identifier := text_at(document, "event.id"):
        return identifier
    parts = (value_at(document, path) for path in ("@timestamp", *_GROUP_FIELDS, *_IDENTITY_FIELDS))
    return name_alert(str(part) for part in parts)


def _parse_severity(document: dict[str, Any]) -> tuple[Severity | None, str | None]:
    """Return the severity, or None if unknown, and its word or number."""
    word = text_at(document, *_SEVERITY_FIELDS)
    if word and (severity := _SEVERITIES.get(word.casefold())):
        return severity, word
    for path in _RISK_FIELDS:
        risk = value_at(document, path)
        if isinstance(risk, int | float) and not isinstance(risk, bool):
            found = (severity for least, severity in _MIN_RISKS if risk >= least)
            return next(found, Severity.LOW), f"{risk:g}"
    number = value_at(document, "event.severity")
    known = _NUMBERS.get(text_at(document, "event.module") or "", {})
    if isinstance(number, int) and not isinstance(number, bool):
        return known.get(number), word or str(number)
    return None, word


def _parse_change(document: dict[str, Any], at: datetime) -> datetime:
    """Return when an alert of Elastic Security was made, or its status last changed."""
    changed = text_at(document, "kibana.alert.workflow_status_updated_at")
    return max(at, parse_utc(changed)) if changed else at


def _find_url(document: dict[str, Any]) -> str | None:
    url = text_at(document, "kibana.alert.url", "event.url")
    return url if url and url.startswith(("https://", "http://")) else None


def _find_techniques(document: dict[str, Any]) -> Iterator[str]:
    yield from find_ecs_techniques(document)
    for prefix in _TECHNIQUE_PREFIXES:
        yield from find_ecs_techniques({"threat": value_at(document, f"{prefix}.threat")})


def _describe(document: dict[str, Any], title: str) -> str:
    paths = ("kibana.alert.reason", "event.reason", "message", "rule.description")
    found = (text_at(document, path) for path in paths)
    return "\n".join(dict.fromkeys(line for line in found if line and line != title))


def build_event(document: dict[str, Any]) -> SiemEvent:
    """Return the event of a document. Raises ValueError if a valid time is missing."""
    at = parse_time(document)
    fields = ((path, text_at(document, path)) for path in _EVENT_FIELDS)
    return SiemEvent(
        external_id=text_at(document, "event.id", "kibana.alert.uuid"),
        occurred_at=at,
        summary=" ".join(_summarize(document).split())[:_MAX_TEXT_LENGTH],
        entities=find_log_entities(document, _MAX_ENTITIES).entities,
        relations=union([_find_relations(document, at)]),
        fields={path: value[:_MAX_TEXT_LENGTH] for path, value in fields if value},
    )


def _summarize(document: dict[str, Any]) -> str:
    kind = text_at(document, "event.dataset", "event.module", "event.category") or "event"
    what = text_at(document, "rule.name", "message", "event.action", "event.original")
    return f"{kind}: {what}" if what else kind


def _find_relations(document: dict[str, Any], at: datetime) -> Iterator[Relation]:
    """Yield connections, name resolutions, and programs that ran on hosts."""
    entities = find_log_entities(document, _MAX_ENTITIES)
    sources, targets = (
        [entity for entity in side if entity.kind is EntityKind.IP] for side in entities.roles
    )
    yield from relate(sources, RelationType.CONNECTED_TO, targets, at)
    asked = _select(document, "dns.question.name", EntityKind.DOMAIN)
    answers = _select(document, "dns.resolved_ip", EntityKind.IP)
    yield from relate(asked, RelationType.RESOLVES_TO, answers, at)
    hosts = _select(document, "host.name", EntityKind.HOST)
    programs = [entity for entity in entities.entities if entity.kind is EntityKind.PROCESS]
    yield from relate(programs, RelationType.EXECUTED_ON, hosts, at)


def _select(document: dict[str, Any], path: str, kind: EntityKind) -> list[Entity]:
    """Return the entities of one field."""
    value = value_at(document, path)
    values = value if isinstance(value, list) else [value]
    return [Entity(kind, found) for item in values if (found := text({"": item}, ""))]
