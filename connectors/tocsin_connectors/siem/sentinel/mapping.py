"""Mapping of Sentinel incidents and their alerts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote, unquote
from uuid import UUID

from tocsin import Alert, Entity, Incident, IncidentStatus, Severity
from tocsin_connectors.siem.microsoft.mapping import parse_severity, parse_time
from tocsin_connectors.siem.records import (
    EntityRoles,
    child,
    children,
    describe_value,
    filter_techniques,
    find_tactics,
    number,
    text,
    texts,
    union,
)
from tocsin_connectors.siem.sentinel.entities import find_entities, find_roles

OWN_LABEL = "tocsin"
RULE_NAME = "Analytic Rule Name"
"""Member of an alert's `additionalData`. Only alerts of analytics rules have it: the `alertType` of
other products' alerts may be the name of the product.
https://learn.microsoft.com/azure/sentinel/security-alert-schema"""
_NAME_BASED = 5
STATUSES: Mapping[str, IncidentStatus] = {
    "new": IncidentStatus.NEW,
    "active": IncidentStatus.ACTIVE,
    "closed": IncidentStatus.CLOSED,
}


def build_incident(record: Mapping[str, Any], portal: str | None, tenant: str) -> Incident:
    """Return the incident of a record, without its alerts and entities.

    `portal` is the URL of the Defender portal. Raises ValueError if the record has no name or
    change time.
    """
    name, properties = text(dict(record), "name"), child(dict(record), "properties")
    if name is None:
        raise ValueError(f"name is {describe_value(record.get('name'))}")
    changed_at = _parse_time(properties, "lastModifiedTimeUtc")
    raw_severity, raw_status = text(properties, "severity"), text(properties, "status")
    severity = parse_severity(raw_severity)
    more = child(properties, "additionalData")
    return Incident(
        external_id=name,
        external_number=_get_number(properties),
        title=text(properties, "title") or f"Incident {_get_number(properties) or name}",
        description="\n".join(_describe(properties)),
        severity=severity or Severity.MEDIUM,
        raw_severity=raw_severity,
        severity_assumed=severity is None,
        status=STATUSES.get((raw_status or "").casefold(), IncidentStatus.NEW),
        raw_status=raw_status,
        merged_into=_get_merge_target(more),
        occurred_at=_parse_time(
            properties, "firstActivityTimeUtc", "createdTimeUtc", "lastModifiedTimeUtc"
        ),
        changed_at=changed_at,
        source_url=_build_url(properties, portal, tenant),
        techniques=union([_iterate_techniques([more])]),
        tactics=union([find_tactics(more, "tactics")]),
    )


def is_own(record: Mapping[str, Any]) -> bool:
    """Return whether Tocsin created an incident: by its label and its kind of GUID.

    A label alone is not enough, since people and automation rules also set labels. Sentinel's own
    GUIDs are random (version 4 of RFC 9562), Tocsin's are name-based (version 5).
    """
    labels = children(child(dict(record), "properties"), "labels")
    if OWN_LABEL not in {(text(label, "labelName") or "").casefold() for label in labels}:
        return False
    try:
        return UUID(text(dict(record), "name") or "").version == _NAME_BASED
    except ValueError:
        return False


def build_alerts(records: Iterable[Mapping[str, Any]]) -> Iterator[Alert]:
    """Yield the alerts of records. Invalid records are skipped."""
    for record in records:
        properties = child(dict(record), "properties")
        name = text(properties, "systemAlertId") or text(dict(record), "name")
        try:
            at = _parse_time(properties, "startTimeUtc", "timeGenerated", "processingEndTime")
        except ValueError:
            continue
        if name:
            yield Alert(
                external_id=name,
                title=text(properties, "alertDisplayName")
                or text(properties, "friendlyName")
                or name,
                severity=parse_severity(text(properties, "severity")) or Severity.MEDIUM,
                occurred_at=at,
                rule=text(child(properties, "additionalData"), RULE_NAME),
                record=record,
            )


def find_techniques(records: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the ATT&CK techniques of alerts."""
    yield from _iterate_techniques(child(dict(record), "properties") for record in records)


def find_alert_tactics(records: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the ATT&CK tactics of alerts."""
    for record in records:
        yield from find_tactics(record, "properties.tactics")


def find_alert_entities(records: Iterable[Mapping[str, Any]]) -> Iterator[Entity]:
    """Yield the entities in alerts, beside those of their incident."""
    for content in _iterate_entity_lists(records):
        yield from find_entities(content)


def find_alert_roles(records: Iterable[Mapping[str, Any]]) -> EntityRoles:
    """Return the senders and recipients of mails in alerts."""
    return EntityRoles.merge(map(find_roles, _iterate_entity_lists(records)))


def _iterate_entity_lists(records: Iterable[Mapping[str, Any]]) -> Iterator[Any]:
    for record in records:
        properties = child(dict(record), "properties")
        for holder in (properties, child(properties, "additionalData")):
            for member in ("entities", "Entities"):
                yield holder.get(member)


def _iterate_techniques(holders: Iterable[dict[str, Any]]) -> Iterator[str]:
    for holder in holders:
        yield from filter_techniques(texts(holder, "techniques"))


def _parse_time(properties: dict[str, Any], *fields: str) -> datetime:
    """Return the first available time. Raises ValueError if there is none or it is invalid."""
    for field in fields:
        if moment := parse_time(properties, field):
            return moment
    raise ValueError(f"{fields[0]} is {describe_value(properties.get(fields[0]))}")


def _is_from_defender(properties: dict[str, Any]) -> bool:
    """Return whether the incident is from Defender XDR, whose number people then use."""
    return "sentinel" not in (text(properties, "providerName") or "sentinel").casefold()


def _get_number(properties: dict[str, Any]) -> str | None:
    if _is_from_defender(properties) and (quoted := text(properties, "providerIncidentId")):
        return quoted
    own = number(properties, "incidentNumber")
    return None if own is None else str(own)


def _describe(properties: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the description: finding and, if closed, classification."""
    if description := text(properties, "description"):
        yield description
    if found := text(properties, "classification"):
        reason, comment = (
            text(properties, "classificationReason"),
            text(properties, "classificationComment"),
        )
        suffix = f" ({reason})" if reason else ""
        yield f"Closed as {found}{suffix}{f': {comment}' if comment else ''}"


def _get_merge_target(more: dict[str, Any]) -> str | None:
    """Return the incident that this one was merged into, from the link to it."""
    _, found, name = (text(more, "mergedIncidentUrl") or "").rpartition("/incidents/")
    return unquote(name.rstrip("/")) or None if found else None


def _build_url(properties: dict[str, Any], portal: str | None, tenant: str) -> str | None:
    """Return the URL of the incident, in the Defender portal if it is there."""
    more, quoted = child(properties, "additionalData"), text(properties, "providerIncidentId")
    if link := text(more, "providerIncidentUrl"):
        return link
    if portal and quoted and _is_from_defender(properties):
        return f"{portal}/incident2/{quote(quoted, safe='')}/overview?tid={tenant}"
    return text(properties, "incidentUrl")
