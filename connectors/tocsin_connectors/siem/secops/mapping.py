"""Mapping of detections and of events in the Unified Data Model.

https://cloud.google.com/chronicle/docs/reference/rest/v1alpha/Noun and
https://cloud.google.com/chronicle/docs/reference/udm-field-list
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from tocsin import Alert, Entity, EntityKind, Incident, IncidentStatus, Severity
from tocsin_connectors.siem.records import (
    EntityRoles,
    child,
    children,
    describe_value,
    find_field_roles,
    find_techniques_in_text,
    parse_entities,
    parse_utc,
    text,
    texts_at,
    union,
)

SEVERITIES: Mapping[str, Severity] = {
    "info": Severity.INFORMATIONAL,
    "informational": Severity.INFORMATIONAL,
    "low": Severity.LOW,
    "medium": Severity.MEDIUM,
    "high": Severity.HIGH,
    "critical": Severity.CRITICAL,
}
UNSPECIFIED = frozenset({"unknown_severity", "unspecified", "priority_unspecified"})
"""Values that mean nothing, so the next field counts."""
STATUSES: Mapping[str, IncidentStatus] = {
    "new": IncidentStatus.NEW,
    "open": IncidentStatus.NEW,
    "reviewed": IncidentStatus.ACTIVE,
    "closed": IncidentStatus.CLOSED,
}
STATUS_WORDS: Mapping[IncidentStatus, str] = {
    IncidentStatus.NEW: "NEW",
    IncidentStatus.ACTIVE: "REVIEWED",
    IncidentStatus.CLOSED: "CLOSED",
}


def parse_severity(word: str | None) -> Severity | None:
    """Return the severity of a word such as `PRIORITY_HIGH` or `High`, or None."""
    return SEVERITIES.get((word or "").casefold().removeprefix("priority_"))


def parse_status(word: str | None) -> IncidentStatus | None:
    """Return the status of a detection by Google's term, or None for unknown terms."""
    return STATUSES.get((word or "").casefold())


_NOUNS = ("principal", "target", "src", "observer", "intermediary", "about")
_NOUN_FIELDS: Mapping[EntityKind, tuple[str, ...]] = {
    EntityKind.IP: ("ip", "asset.ip"),
    EntityKind.HOST: ("hostname", "asset.hostname"),
    EntityKind.USER: ("user.userid", "user.windowsSid"),
    EntityKind.EMAIL: ("user.emailAddresses", "email"),
    EntityKind.DOMAIN: ("domain.name",),
    EntityKind.URL: ("url",),
    EntityKind.FILE_HASH: (
        *("file.sha256", "file.sha1", "file.md5"),
        *("process.file.sha256", "process.file.sha1", "process.file.md5"),
    ),
    EntityKind.FILE: ("file.fullPath",),
    EntityKind.PROCESS: ("process.file.fullPath",),
    EntityKind.CLOUD_RESOURCE: ("resource.name",),
}
_EVENT_FIELDS: Mapping[EntityKind, tuple[str, ...]] = {
    EntityKind.DOMAIN: ("network.dns.questions.name",),
    EntityKind.EMAIL: ("network.email.from", "network.email.to"),
    EntityKind.URL: ("network.http.referralUrl",),
    EntityKind.CVE: ("extensions.vulns.vulnerabilities.cveId",),
}
ENTITY_FIELDS: Mapping[EntityKind, tuple[str, ...]] = {
    kind: (
        *(f"{noun}.{path}" for noun in _NOUNS for path in _NOUN_FIELDS.get(kind, ())),
        *_EVENT_FIELDS.get(kind, ()),
    )
    for kind in (*_NOUN_FIELDS, EntityKind.CVE)
}
"""Fields that hold entities, by kind, in the spelling of responses."""


def find_entities(event: dict[str, Any], within: str = "") -> Iterator[Entity]:
    """Yield the entities of an event, or of a noun such as `principal`."""
    for kind, paths in ENTITY_FIELDS.items():
        for path in paths:
            if path.startswith(within):
                for value in texts_at(event, path):
                    yield from parse_entities(kind, value)


_ROLE_KINDS = frozenset({EntityKind.IP, EntityKind.HOST, EntityKind.USER, EntityKind.EMAIL})


def find_roles(event: dict[str, Any]) -> EntityRoles:
    """Return the source and the target of an event: `principal` and `src`, and `target`.

    https://cloud.google.com/chronicle/docs/unified-data-model/udm-usage
    """
    sources, targets = (
        [
            entity
            for noun in nouns
            for entity in find_entities(event, f"{noun}.")
            if entity.kind in _ROLE_KINDS
        ]
        for nouns in (("principal", "src"), ("target",))
    )
    mail = find_field_roles(event, _SENDERS, _RECIPIENTS)
    return EntityRoles(union([sources, mail.sources]), union([targets, mail.targets]))


_SENDERS = {EntityKind.EMAIL: ("network.email.from",)}
_RECIPIENTS = {EntityKind.EMAIL: ("network.email.to",)}


def build_incident(given: Mapping[str, Any]) -> Incident:
    """Return the incident of a detection. Raises ValueError if it has no ID or no time."""
    record = dict(given)
    name = text(record, "id")
    if name is None:
        raise ValueError(f"id is {describe_value(record.get('id'))}")
    created_at, changed_at = parse_times(record)
    rule = next(iter(children(record, "detection")), {})
    feedback = child(record, "feedbackSummary")
    word, status = _select_severity(rule, feedback), text(feedback, "status")
    severity = parse_severity(word)
    title = text(rule, "ruleName") or f"Detection {name}"
    occurred_at = _parse_start(record) or created_at
    roles = EntityRoles.merge(map(find_roles, _iterate_events(record)))
    return Incident(
        external_id=name,
        title=title,
        description="\n".join(_describe(rule)),
        severity=severity or Severity.MEDIUM,
        raw_severity=word,
        severity_assumed=severity is None,
        status=parse_status(status) or IncidentStatus.NEW,
        raw_status=status,
        occurred_at=occurred_at,
        changed_at=changed_at,
        source_url=_get_link(rule),
        techniques=union([_find_techniques(rule)]),
        entities=union(find_entities(event) for event in _iterate_events(record)),
        sources=roles.sources,
        targets=roles.targets,
        alerts=(
            Alert(
                external_id=name,
                title=title,
                severity=severity or Severity.MEDIUM,
                occurred_at=occurred_at,
            ),
        ),
    )


def parse_times(record: dict[str, Any]) -> tuple[datetime, datetime]:
    """Return when a detection was created, and when it last changed.

    Raises ValueError if it has no creation time. `detectionTime` is neither: it is the end of the
    interval that the rule examined, hours earlier for a daily rule.
    """
    created = text(record, "createdTime")
    if created is None:
        raise ValueError(f"createdTime is {describe_value(record.get('createdTime'))}")
    created_at = parse_utc(created)
    feedback = child(record, "feedbackSummary")
    later = (_parse_time(record, "lastUpdatedTime"), _parse_time(feedback, "createTime"))
    return created_at, max([created_at, *(moment for moment in later if moment)])


def _parse_time(record: dict[str, Any], member: str) -> datetime | None:
    with suppress(ValueError):
        if value := text(record, member):
            return parse_utc(value)
    return None


def _parse_start(record: dict[str, Any]) -> datetime | None:
    return _parse_time(child(record, "timeWindow"), "startTime") or _parse_time(
        record, "detectionTime"
    )


def _select_severity(rule: dict[str, Any], feedback: dict[str, Any]) -> str | None:
    """Return the severity term of the analyst, or else of the rule."""
    labels = children(rule, "ruleLabels") + children(rule, "outcomes")
    values = (
        text(label, "value")
        for label in labels
        if (text(label, "key") or "").casefold() == "severity"
    )
    priorities = (text(feedback, "priority"), text(rule, "severity"), *values)
    return next((word for word in priorities if word and word.casefold() not in UNSPECIFIED), None)


def _describe(rule: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the description: finding and detection fields."""
    if description := text(rule, "description") or text(rule, "summary"):
        yield description
    for detectionfield in children(rule, "detectionFields"):
        if (key := text(detectionfield, "key")) and (value := text(detectionfield, "value")):
            yield f"{key}: {value}"


def _get_link(rule: dict[str, Any]) -> str | None:
    url = text(rule, "urlBackToProduct")
    return url if url and url.startswith("https://") else None


def _find_techniques(rule: dict[str, Any]) -> Iterator[str]:
    """Yield the ATT&CK IDs of a rule, from its labels and attack details."""
    for rulelabel in children(rule, "ruleLabels"):
        if re.search("mitre|technique", text(rulelabel, "key") or "", re.IGNORECASE):
            yield from find_techniques_in_text(text(rulelabel, "value") or "")
    for item in children(child(rule, "attackDetails"), "techniques"):
        yield from find_techniques_in_text(text(item, "subtechniqueId") or text(item, "id") or "")


def _iterate_events(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for element in children(record, "collectionElements"):
        for reference in children(element, "references"):
            yield from children(reference, "event")
            yield from (
                {"about": entity} for entity in children(child(reference, "entity"), "entity")
            )
