"""Mapping of detection alerts and cases to incidents, their entities, severities and statuses.

Fields: https://www.elastic.co/docs/reference/ecs/ecs-field-reference
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from ipaddress import ip_address
from typing import Any
from urllib.parse import quote, urlencode

from tocsin import Alert, Entity, EntityKind, Incident, IncidentStatus, Severity, Window
from tocsin_connectors.siem.elastic.settings import ElasticSettings
from tocsin_connectors.siem.indices.client import build_time_query
from tocsin_connectors.siem.records import (
    ECS_FLOW,
    EntityRoles,
    child,
    children,
    describe_value,
    filter_techniques,
    find_document_roles,
    find_flow,
    find_tactics,
    number,
    parse_entities,
    parse_utc,
    require_text,
    text,
    texts_at,
    union,
)

SEVERITIES = {
    "low": Severity.LOW,
    "medium": Severity.MEDIUM,
    "high": Severity.HIGH,
    "critical": Severity.CRITICAL,
}
STATUSES = {
    "open": IncidentStatus.NEW,
    "acknowledged": IncidentStatus.ACTIVE,
    "in-progress": IncidentStatus.ACTIVE,
    "closed": IncidentStatus.CLOSED,
}
"""Alerts are acknowledged, cases in progress. In version 7, alerts were in progress, too."""
ALERT_STATUSES = {
    IncidentStatus.NEW: "open",
    IncidentStatus.ACTIVE: "acknowledged",
    IncidentStatus.CLOSED: "closed",
}
CASE_STATUSES = ALERT_STATUSES | {IncidentStatus.ACTIVE: "in-progress"}
OBSERVABLE_TYPES = {
    "observable-type-ipv4": EntityKind.IP,
    "observable-type-ipv6": EntityKind.IP,
    "observable-type-hostname": EntityKind.HOST,
    "observable-type-domain": EntityKind.DOMAIN,
    "observable-type-url": EntityKind.URL,
    "observable-type-email": EntityKind.EMAIL,
    "observable-type-file-hash": EntityKind.FILE_HASH,
    "observable-type-file-path": EntityKind.FILE,
}
"""Observable types that Kibana ships. Customers add their own."""


_HASH_OWNERS = ("file", "process", "process.parent", "dll")
_ADDRESS_OWNERS = ("source", "destination", "client", "server")
ENTITY_FIELDS: dict[EntityKind, tuple[str, ...]] = {
    EntityKind.IP: (
        *(f"{end}.ip" for end in _ADDRESS_OWNERS),
        *("host.ip", "dns.resolved_ip", "related.ip", "threat.indicator.ip"),
    ),
    EntityKind.HOST: ("host.name", "host.hostname", "related.hosts"),
    EntityKind.USER: ("user.name", "user.target.name", "user.effective.name", "related.user"),
    EntityKind.DOMAIN: (
        *("dns.question.name", "url.domain", "tls.client.server_name"),
        *(f"{end}.domain" for end in _ADDRESS_OWNERS),
    ),
    EntityKind.URL: ("url.full", "threat.indicator.url.full"),
    EntityKind.FILE_HASH: (
        *(f"{owner}.hash.{kind}" for owner in _HASH_OWNERS for kind in ("sha256", "sha1", "md5")),
        "related.hash",
    ),
    EntityKind.FILE: ("file.path",),
    EntityKind.PROCESS: (
        *("process.executable", "process.parent.executable"),
        *("process.name", "process.parent.name"),
    ),
    EntityKind.EMAIL: (
        *("email.from.address", "email.to.address", "email.cc.address", "email.sender.address"),
        "user.email",
    ),
    EntityKind.CVE: ("vulnerability.id",),
    EntityKind.CLOUD_RESOURCE: ("cloud.instance.id", "orchestrator.resource.id"),
}
_THREAT_FIELDS = ("kibana.alert.rule.threat", "kibana.alert.rule.parameters.threat", "threat")
_TACTIC_FIELDS = tuple(f"{name}.tactic.id" for name in _THREAT_FIELDS)


def find_entities(source: dict[str, Any]) -> Iterator[Entity]:
    """Yield the entities of a document, without loopback and link-local addresses of the host."""
    for kind, names in ENTITY_FIELDS.items():
        for name in names:
            for value in texts_at(source, name):
                found = parse_entities(kind, value)
                yield from (
                    entity for entity in found if name != "host.ip" or _is_routable(entity.value)
                )


def find_techniques(source: dict[str, Any]) -> Iterator[str]:
    """Yield the ATT&CK IDs of a rule or an event, sub-techniques instead of their techniques."""
    paths = (
        f"{field_}.technique{sub}.id" for field_ in _THREAT_FIELDS for sub in (".subtechnique", "")
    )
    found = list(filter_techniques(value for path in paths for value in texts_at(source, path)))
    parents = {technique.partition(".")[0] for technique in found if "." in technique}
    yield from (technique for technique in found if technique not in parents)


def _is_routable(value: str) -> bool:
    try:
        address = ip_address(value)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_link_local)


TIMESTAMP, STATUS_UPDATED = "@timestamp", "kibana.alert.workflow_status_updated_at"
"""Time of creation, or of the last suppressed alert; time of the last status change."""
BUILDING_BLOCK_TYPE = "kibana.alert.building_block_type"
"""Set on alerts that only serve as input of other rules."""


def build_alert_incident(hit: Mapping[str, Any], settings: ElasticSettings) -> Incident:
    """Return the incident of an alert. Raises ValueError if it has no ID or no time."""
    source, alert = child(dict(hit), "_source"), build_alert(hit)
    word = first_text(source, "kibana.alert.severity")
    status = first_text(source, "kibana.alert.workflow_status")
    lines = (first_text(source, f"kibana.alert.{name}") for name in ("reason", "rule.description"))
    roles = find_document_roles(source)
    changes = [_parse_time(source, TIMESTAMP), *map(parse_utc, texts_at(source, STATUS_UPDATED))]
    return Incident(
        external_id=alert.external_id,
        title=alert.title,
        description="\n".join(line for line in lines if line),
        severity=alert.severity,
        severity_assumed=(word or "").casefold() not in SEVERITIES,
        raw_severity=word,
        status=STATUSES.get((status or "").casefold(), IncidentStatus.NEW),
        raw_status=status,
        occurred_at=alert.occurred_at,
        changed_at=max(changes),
        source_url=first_text(source, "kibana.alert.url")
        or _build_alert_url(alert.external_id, source, settings),
        techniques=union([find_techniques(source)]),
        tactics=union([find_tactics(source, *_TACTIC_FIELDS)]),
        entities=union([find_entities(source)]),
        sources=roles.sources,
        targets=roles.targets,
        alerts=(alert,),
    )


def build_alert(hit: Mapping[str, Any]) -> Alert:
    """Return the alert of a document. Raises ValueError if it has no ID or no time."""
    identifier = require_text(dict(hit), "_id")
    source = child(dict(hit), "_source")
    happened = first_text(source, "kibana.alert.original_time") or first_text(
        source, "kibana.alert.start"
    )
    word = first_text(source, "kibana.alert.severity") or ""
    rule = first_text(source, "kibana.alert.rule.name")
    return Alert(
        external_id=identifier,
        title=rule or "Elastic alert",
        severity=SEVERITIES.get(word.casefold(), Severity.MEDIUM),
        occurred_at=parse_utc(happened) if happened else _parse_time(source, TIMESTAMP),
        rule=rule,
        flow=find_flow(source, ECS_FLOW),
        record=source,
    )


def first_text(source: dict[str, Any], name: str) -> str | None:
    """Return the first text of a field, or None if it has none."""
    return next(iter(texts_at(source, name)), None)


def _parse_time(source: dict[str, Any], name: str) -> datetime:
    value = first_text(source, name)
    if value is None:
        raise ValueError(f"{name} is missing or not a string")
    return parse_utc(value)


def _build_alert_url(identifier: str, source: dict[str, Any], settings: ElasticSettings) -> str:
    """Return the URL of an alert, for a Kibana without a configured public URL."""
    query = {"index": settings.alerts_index, "timestamp": first_text(source, TIMESTAMP)}
    name = quote(identifier, safe="")
    return f"{settings.kibana}/app/security/alerts/redirect/{name}?{urlencode(query)}"


CASE_PREFIX = "case:"
"""Prefix that distinguishes case IDs from alert IDs."""


def build_case_incident(case: Mapping[str, Any], settings: ElasticSettings) -> Incident:
    """Return the incident of a case. Raises ValueError if it has no ID or no time."""
    record = dict(case)
    identifier, created = text(record, "id"), text(record, "created_at")
    if identifier is None or created is None:
        raise ValueError(
            f"id is {describe_value(case.get('id'))}, created_at {created or 'missing'}"
        )
    word, status = text(record, "severity"), text(record, "status")
    severity = SEVERITIES.get((word or "").casefold())
    shown = number(record, "incremental_id")
    return Incident(
        external_id=f"{CASE_PREFIX}{identifier}",
        external_number=None if shown is None else str(shown),
        title=text(record, "title") or "Elastic case",
        description=text(record, "description") or "",
        severity=severity or Severity.MEDIUM,
        severity_assumed=severity is None,
        raw_severity=word,
        status=STATUSES.get((status or "").casefold(), IncidentStatus.NEW),
        raw_status=status,
        occurred_at=parse_utc(created),
        changed_at=parse_case_update(record) or parse_utc(created),
        source_url=f"{settings.kibana}/app/security/cases/{quote(identifier, safe='')}",
        entities=union([_find_observables(record)]),
    )


def parse_case_update(case: Mapping[str, Any]) -> datetime | None:
    """Return when a case was last changed, or None if it never was.

    Raises ValueError for an invalid time.
    """
    value = text(dict(case), "updated_at")
    return parse_utc(value) if value else None


def has_alerts(case: Mapping[str, Any]) -> bool:
    """Return whether alerts are attached to a case."""
    return (number(dict(case), "totalAlerts") or 0) > 0


def attach_alerts(incident: Incident, hits: Iterable[Mapping[str, Any]]) -> Incident:
    """Add alerts to an incident, with their entities and techniques."""
    alerts, entities, techniques = [], [incident.entities], [incident.techniques]
    tactics = [incident.tactics]
    roles = [EntityRoles(incident.sources, incident.targets)]
    for hit in hits:
        with suppress(ValueError):  # skip invalid alerts
            alerts.append(build_alert(hit))
            source = child(dict(hit), "_source")
            entities.append(tuple(find_entities(source)))
            techniques.append(tuple(find_techniques(source)))
            tactics.append(tuple(find_tactics(source, *_TACTIC_FIELDS)))
            roles.append(find_document_roles(source))
    merged = EntityRoles.merge(roles)
    return replace(
        incident,
        alerts=tuple(alerts),
        entities=union(entities),
        sources=merged.sources,
        targets=merged.targets,
        techniques=union(techniques),
        tactics=union(tactics),
    )


def _find_observables(case: dict[str, Any]) -> Iterator[Entity]:
    for observable in children(case, "observables"):
        kind = OBSERVABLE_TYPES.get(text(observable, "typeKey") or "")
        if kind and (value := text(observable, "value")):
            yield from parse_entities(kind, value)


def build_change_query(window: Window) -> dict[str, Any]:
    """Return the query for alerts that were created or changed status in a window."""
    changes = [build_time_query(name, window) for name in (TIMESTAMP, STATUS_UPDATED)]
    return {
        "bool": {
            "should": changes,
            "minimum_should_match": 1,
            "must_not": [{"exists": {"field": BUILDING_BLOCK_TYPE}}],
        }
    }
