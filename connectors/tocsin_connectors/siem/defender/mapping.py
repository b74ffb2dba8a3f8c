"""Mapping of Defender XDR incidents, their alerts and the evidence in them.

There are about fifty types of evidence, and Microsoft adds more. A member with the same name has
the same meaning in every type:
https://learn.microsoft.com/graph/api/resources/security-alertevidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from tocsin import Alert, Entity, EntityKind, Incident, IncidentStatus, Severity
from tocsin_connectors.siem.microsoft.mapping import (
    parse_entity,
    parse_file,
    parse_machine,
    parse_severity,
    parse_time,
    parse_user,
)
from tocsin_connectors.siem.records import (
    EntityRoles,
    child,
    children,
    describe_value,
    filter_techniques,
    find_tactics,
    require_text,
    text,
    texts,
    union,
)

_MAX_DEPTH = 8
_ENTITY_MEMBERS: Mapping[str, EntityKind] = {
    **dict.fromkeys(
        (
            "ipAddress",
            "ipInterfaces",
            "lastExternalIpAddress",
            "lastIpAddress",
            "senderIp",
            "sourceIpAddress",
            "destinationIpAddress",
        ),
        EntityKind.IP,
    ),
    **dict.fromkeys(("sha1", "sha256", "md5"), EntityKind.FILE_HASH),
    **dict.fromkeys(("url", "urls"), EntityKind.URL),
    **dict.fromkeys(("emailAddress", "sender", "fromEmailAddress"), EntityKind.EMAIL),
    **dict.fromkeys(("primaryAddress", "recipientEmailAddress", "recipient"), EntityKind.MAILBOX),
    **dict.fromkeys(
        ("resourceId", "amazonResourceId", "fullResourceName"), EntityKind.CLOUD_RESOURCE
    ),
    "domainName": EntityKind.DOMAIN,
}
_ACCOUNT_MEMBERS = ("accountName", "userPrincipalName", "azureAdUserId")
"""Members that identify an account, whose domain is a Windows domain."""
_AUTHENTICODE = "sha256ac"
"""Authenticode hash, which covers the signed part of a file and is no file hash."""


def find_entities(evidence: Any) -> Iterator[Entity]:
    """Yield the entities in a list of evidence. Invalid values are skipped."""
    yield from _find_nested(evidence, _MAX_DEPTH)


_SOURCE_ROLES = frozenset({"source", "attacker", "compromised"})
_TARGET_ROLES = frozenset({"destination", "attacked", "scanned", "commandandcontrol"})
# https://learn.microsoft.com/graph/api/resources/security-alertevidence, `evidenceRole`
_OWN_ADDRESSES = frozenset({"ipInterfaces", "lastExternalIpAddress", "lastIpAddress"})


def find_roles(evidence: Any) -> EntityRoles:
    """Return the source and the target in a list of evidence, and senders and recipients of mails.

    A compromised machine is a source. Its addresses have no role: the external one is that of the
    organization's gateway.
    """
    sides: dict[bool, list[Entity]] = {True: [], False: []}
    for item in children({"": evidence}, ""):
        named = list(_find_named({k: v for k, v in item.items() if k not in _OWN_ADDRESSES}))
        words = {word.casefold() for word in texts(item, "roles")}
        sides[True] += named if words & _SOURCE_ROLES else []
        sides[False] += named if words & _TARGET_ROLES and not words & _SOURCE_ROLES else []
        sides[True] += _find_mail_addresses(item, ("p1Sender", "p2Sender"), "senderIp")
        sides[False] += _find_mail_addresses(item, (), "recipientEmailAddress")
    return EntityRoles(union([sides[True]]), union([sides[False]]))


def _find_mail_addresses(
    item: dict[str, Any], senders: Iterable[str], member: str
) -> Iterator[Entity]:
    for value in texts(item, member):
        yield from parse_entity(_ENTITY_MEMBERS[member], value)
    for sender in senders:
        for value in texts(child(item, sender), "emailAddress"):
            yield from parse_entity(EntityKind.EMAIL, value)


def _find_nested(content: Any, deepest: int) -> Iterator[Entity]:
    if isinstance(content, list):
        for item in content if deepest else ():
            yield from _find_nested(item, deepest - 1)
    elif isinstance(content, dict):
        yield from _find_named(content)
        for value in content.values() if deepest else ():
            if isinstance(value, dict | list):
                yield from _find_nested(value, deepest - 1)


def _find_named(thing: dict[str, Any]) -> Iterator[Entity]:
    """Yield the entities that one object names."""
    if any(name in thing for name in _ACCOUNT_MEMBERS):
        yield from _find_account(thing)
        return
    yield from _find_machine(thing)
    yield from parse_file(text(thing, "filePath"), text(thing, "fileName"))
    for member in ("imageFile", "parentProcessImageFile"):
        if image := text(child(thing, member), "fileName"):
            yield Entity(EntityKind.PROCESS, image)
    for member, kind in _ENTITY_MEMBERS.items():
        for value in texts(thing, member):
            yield from parse_entity(kind, value)
    if (
        text(thing, "algorithm") or _AUTHENTICODE
    ).casefold() != _AUTHENTICODE:  # evidence that is a hash
        for value in texts(thing, "value"):
            yield from parse_entity(EntityKind.FILE_HASH, value)


def _find_account(thing: dict[str, Any]) -> Iterator[Entity]:
    names = (text(thing, name) for name in ("accountName", "domainName", "userPrincipalName"))
    yield from parse_user(*names)


def _find_machine(thing: dict[str, Any]) -> Iterator[Entity]:
    """Yield a machine by its network name."""
    name = text(thing, "deviceDnsName") or text(thing, "hostName")
    yield from parse_machine(name, text(thing, "dnsDomain"))
    yield from parse_machine(text(thing, "deviceName"))


# https://learn.microsoft.com/graph/api/resources/security-incident
STATUSES: Mapping[str, IncidentStatus] = {
    "active": IncidentStatus.NEW,
    "new": IncidentStatus.NEW,
    "inprogress": IncidentStatus.ACTIVE,
    "awaitingaction": IncidentStatus.ACTIVE,
    "resolved": IncidentStatus.CLOSED,
    "redirected": IncidentStatus.CLOSED,
}
_UNKNOWN = "unknown"


ALERT_PREFIX = "alert:"
"""Prefix that tells the IDs of alerts from those of incidents."""
_ALERT_MEMBERS = frozenset({"alertWebUrl", "providerAlertId", "serviceSource"})


def is_alert(record: Mapping[str, Any]) -> bool:
    """Return whether a record is an alert. Incidents have none of these members."""
    return not _ALERT_MEMBERS.isdisjoint(record)


def build_alert_incident(given: Mapping[str, Any], *, is_merged: bool) -> Incident:
    """Return the incident of an alert.

    `is_merged` tells whether one in an incident counts as merged into that. Raises ValueError if
    the alert has no ID or update time.
    """
    alert = dict(given)
    found = build_incident({**alert, "displayName": text(alert, "title"), "alerts": [alert]})
    merged_into = text(alert, "incidentId") if is_merged else None
    return replace(
        found,
        external_id=f"{ALERT_PREFIX}{found.external_id}",
        external_number=None,
        title=text(alert, "title") or f"Alert {found.external_id}",
        status=IncidentStatus.CLOSED if merged_into else found.status,
        merged_into=merged_into,
        source_url=text(alert, "alertWebUrl"),
    )


def build_incident(given: Mapping[str, Any]) -> Incident:
    """Return the incident of a record, with the alerts in the record.

    Raises ValueError if the record has no ID or update time.
    """
    record = dict(given)
    name = require_text(record, "id")
    changed_at = parse_time(record, "lastUpdateDateTime")
    if changed_at is None:
        raise ValueError(
            f"lastUpdateDateTime is {describe_value(record.get('lastUpdateDateTime'))}"
        )
    alerts = children(record, "alerts")
    raw_severity, raw_status = text(record, "severity"), text(record, "status")
    severity = parse_severity(raw_severity)
    roles = EntityRoles.merge(find_roles(alert.get("evidence")) for alert in alerts)
    return Incident(
        external_id=name,
        external_number=name,
        title=text(record, "displayName") or f"Incident {name}",
        description="\n".join(_describe(record)),
        severity=severity or Severity.MEDIUM,
        raw_severity=raw_severity,
        severity_assumed=severity is None,
        status=STATUSES.get((raw_status or "").casefold(), IncidentStatus.NEW),
        raw_status=raw_status,
        merged_into=text(record, "redirectIncidentId"),
        occurred_at=_find_start(record, alerts) or changed_at,
        changed_at=changed_at,
        source_url=text(record, "incidentWebUrl"),
        techniques=union(map(_find_techniques, alerts)),
        tactics=union(find_tactics(alert, "category", "categories") for alert in alerts),
        entities=union(find_entities(alert.get("evidence")) for alert in alerts),
        sources=roles.sources,
        targets=roles.targets,
        alerts=union([_build_alerts(alerts)]),
    )


def _find_start(record: dict[str, Any], alerts: Iterable[dict[str, Any]]) -> datetime | None:
    """Return the time of the first activity, or else of the incident's creation."""
    seen = (_parse_optional_time(alert, "firstActivityDateTime") for alert in alerts)
    return min((moment for moment in seen if moment), default=None) or parse_time(
        record, "createdDateTime"
    )


def _build_alerts(records: Iterable[dict[str, Any]]) -> Iterator[Alert]:
    for record in records:
        name = text(record, "id")
        at = _parse_optional_time(record, "firstActivityDateTime") or _parse_optional_time(
            record, "createdDateTime"
        )
        if name and at:
            yield Alert(
                external_id=name,
                title=text(record, "title") or name,
                severity=parse_severity(text(record, "severity")) or Severity.MEDIUM,
                occurred_at=at,
                # A detector may serve many policies
                rule=text(record, "alertPolicyId") or text(record, "detectorId"),
                record=record,
            )


def _find_techniques(alert: dict[str, Any]) -> Iterator[str]:
    yield from filter_techniques(texts(alert, "mitreTechniques"))


def _describe(record: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the description: finding and classification."""
    if description := text(record, "description"):
        yield description
    values = (text(record, member) for member in ("classification", "determination"))
    decided = [term for term in values if term and term.casefold() != _UNKNOWN]
    if decided:
        yield f"Classified as {', '.join(decided)}"


def _parse_optional_time(record: dict[str, Any], member: str) -> datetime | None:
    try:
        return parse_time(record, member)
    except ValueError:
        return None
