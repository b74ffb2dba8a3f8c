"""Mapping of Falcon alerts to incidents, their entities, severities and statuses.

Alerts about endpoints, identities, clouds, mobile devices and third-party data in Next-Gen SIEM
have different fields, depending on the product. Each field is read wherever it is present.
https://www.falconpy.io/Service-Collections/Alerts.html
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from tocsin import Alert, Entity, EntityKind, Incident, IncidentStatus, Severity
from tocsin_connectors.siem.crowdstrike.pagination import UPDATED
from tocsin_connectors.siem.records import (
    EntityRoles,
    children,
    describe_value,
    filter_techniques,
    find_field_roles,
    find_tactics,
    number,
    parse_entities,
    parse_utc,
    text,
    texts,
    texts_at,
    union,
)

SEVERITIES: Mapping[str, Severity] = {
    "informational": Severity.INFORMATIONAL,
    "low": Severity.LOW,
    "medium": Severity.MEDIUM,
    "high": Severity.HIGH,
    "critical": Severity.CRITICAL,
}
_MIN_SCORES: Mapping[int, Severity] = {
    80: Severity.CRITICAL,
    60: Severity.HIGH,
    40: Severity.MEDIUM,
    20: Severity.LOW,
    1: Severity.INFORMATIONAL,
}
"""Lowest score of each severity."""
_MAX_SCORE = 100
STATUSES: Mapping[str, IncidentStatus] = {
    "new": IncidentStatus.NEW,
    "reopened": IncidentStatus.NEW,
    "in_progress": IncidentStatus.ACTIVE,
    "closed": IncidentStatus.CLOSED,
}
STATUS_WORDS: Mapping[IncidentStatus, str] = {
    IncidentStatus.NEW: "new",
    IncidentStatus.ACTIVE: "in_progress",
    IncidentStatus.CLOSED: "closed",
}


def parse_severity(word: str | None, number: int | None) -> Severity | None:
    """Return the severity by its name, or else by its score; None if neither is known."""
    if found := SEVERITIES.get((word or "").casefold()):
        return found
    if number is None or number > _MAX_SCORE:
        return None
    return next((severity for begin, severity in _MIN_SCORES.items() if number >= begin), None)


ENTITY_FIELDS: Mapping[EntityKind, tuple[str, ...]] = {
    EntityKind.HOST: (
        *("device.hostname", "hostname", "host_names", "computer_name"),
        *("source_endpoint_host_name", "target_endpoint_host_name"),
        *("source_hosts", "destination_hosts", "target_domain_controller_host_name"),
        *("activity_device.hostname", "threatgraph_indicators.hostname"),
    ),
    EntityKind.IP: (
        *("activity_device.external_ip", "activity_device.local_ip"),
        *("device.external_ip", "device.local_ip", "source_ips", "source_ip_address"),
        *("source_endpoint_address_ip4", "source_endpoint_address_ip6", "destination_ips"),
        *("target_endpoint_address_ip4", "network_accesses.remote_address"),
    ),
    EntityKind.USER: (
        *("user_name", "user_names", "user_principal", "source_account_upn"),
        *("source_account_sam_account_name", "target_account_upn", "target_account_name"),
    ),
    EntityKind.DOMAIN: ("domain_names", "dns_requests.domain_name"),
    EntityKind.FILE_HASH: (
        *("sha256", "md5", "parent_details.sha256", "parent_details.md5"),
        *("grandparent_details.sha256", "grandparent_details.md5", "quarantined_files.sha256"),
        *("file_writes.sha256", "file_writes.md5"),
    ),
    EntityKind.FILE: ("filepath", "files_written.filename", "file_writes.name"),
    EntityKind.PROCESS: ("filename", "parent_details.filename", "grandparent_details.filename"),
    EntityKind.CLOUD_RESOURCE: ("resource_id",),
}
_INDICATOR_TYPES: Mapping[str, EntityKind] = {
    "domain": EntityKind.DOMAIN,
    "ip_address": EntityKind.IP,
    "ipv4": EntityKind.IP,
    "ipv6": EntityKind.IP,
    "hash_md5": EntityKind.FILE_HASH,
    "hash_sha256": EntityKind.FILE_HASH,
    "url": EntityKind.URL,
}


def find_entities(record: dict[str, Any]) -> Iterator[Entity]:
    """Yield the entities of an alert."""
    for kind, paths in ENTITY_FIELDS.items():
        for path in paths:
            yield from _parse_values(kind, texts_at(record, path))
    for indicator in (record, *children(record, "ioc_context")):
        kind_of_it = _INDICATOR_TYPES.get((text(indicator, "ioc_type") or "").casefold())
        if kind_of_it is not None:
            yield from _parse_values(kind_of_it, texts(indicator, "ioc_value"))


_SOURCE_FIELDS = {
    EntityKind.HOST: ("source_endpoint_host_name", "source_hosts"),
    EntityKind.IP: (
        *("source_ips", "source_ip_address", "source_endpoint_address_ip4"),
        "source_endpoint_address_ip6",
    ),
    EntityKind.USER: ("source_account_upn", "source_account_sam_account_name"),
}
_TARGET_FIELDS = {
    EntityKind.HOST: (
        *("target_endpoint_host_name", "destination_hosts", "target_domain_controller_host_name"),
    ),
    EntityKind.IP: (
        *("destination_ips", "target_endpoint_address_ip4", "network_accesses.remote_address"),
    ),
    EntityKind.USER: ("target_account_upn", "target_account_name"),
    EntityKind.DOMAIN: ("dns_requests.domain_name",),
}
_DEVICE_FIELDS = {
    EntityKind.HOST: ("device.hostname", "activity_device.hostname"),
    EntityKind.IP: ("device.local_ip", "activity_device.local_ip"),
}


def find_roles(record: dict[str, Any]) -> EntityRoles:
    """Return the source and the target of an alert.

    Without another source, it is the device where the process ran. The device's external address
    has no role: it is that of the organization's gateway.
    """
    roles = find_field_roles(record, _SOURCE_FIELDS, _TARGET_FIELDS)
    if any(entity.kind in (EntityKind.IP, EntityKind.HOST) for entity in roles.sources):
        return roles
    device = find_field_roles(record, _DEVICE_FIELDS, {}).sources
    return EntityRoles(union([roles.sources, device]), roles.targets)


def _parse_values(kind: EntityKind, found: list[str]) -> Iterator[Entity]:
    for value in found:
        if value.strip("0"):  # a missing hash is all zeros
            yield from parse_entities(kind, value)


_START_FIELDS = (
    *("signal_start_timestamp", "first_timestamp", "start_time", "timestamp", "created_timestamp"),
)
"""Fields for the start time, in order of preference: the products differ."""
_LEAD = "automated-lead"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECONDS_FROM = 10**11
"""Numbers from here on are milliseconds since 1970, and seconds below."""


def build_incident(given: Mapping[str, Any], console: str) -> Incident:
    """Return the incident of an alert; `console` is the URL of the console.

    Raises ValueError if the alert has no composite ID or update time.
    """
    record = dict(given)
    name, updated = text(record, "composite_id"), text(record, UPDATED)
    if name is None:
        raise ValueError(f"composite_id is {describe_value(record.get('composite_id'))}")
    if updated is None:
        raise ValueError(f"{UPDATED} is {describe_value(record.get(UPDATED))}")
    changed_at = parse_utc(updated)
    title = text(record, "display_name") or text(record, "name") or f"Alert {name}"
    word = text(record, "severity_name")
    rank = number(record, "severity") or number(record, "score")  # leads have a score alone
    severity, status = parse_severity(word, rank), text(record, "status")
    occurred_at = _parse_start(record) or changed_at
    roles = find_roles(record)
    return Incident(
        external_id=name,
        title=title,
        description="\n".join(_describe(record)),
        severity=severity or Severity.MEDIUM,
        raw_severity=word or (None if rank is None else str(rank)),
        severity_assumed=severity is None,
        status=STATUSES.get((status or "").casefold(), IncidentStatus.NEW),
        raw_status=status,
        occurred_at=occurred_at,
        changed_at=changed_at,
        source_url=_build_url(record, name, console),
        techniques=union([_find_techniques(record)]),
        tactics=union([find_tactics(record, *_TACTIC_FIELDS)]),
        entities=union([find_entities(record)]),
        sources=roles.sources,
        targets=roles.targets,
        alerts=(
            Alert(
                external_id=name,
                title=title,
                severity=severity or Severity.MEDIUM,
                occurred_at=occurred_at,
                rule=_get_rule(record),
                record=record,
            ),
        ),
    )


def _get_rule(record: dict[str, Any]) -> str | None:
    """Return the name of the pattern or correlation rule that matched, or None for a lead.

    A lead is named after its host and time. `pattern_id` is the same for all correlation rules.
    """
    if text(record, "product") == _LEAD:
        return None
    return text(record, "display_name") or text(record, "name")


def _parse_start(record: dict[str, Any]) -> datetime | None:
    for member in _START_FIELDS:
        with suppress(ValueError, OverflowError):
            if value := text(record, member):
                return parse_utc(value)
            if (since := number(record, member)) and since > 0:
                return _EPOCH + timedelta(
                    seconds=since / 1000 if since >= _MILLISECONDS_FROM else since
                )
    return None


def _describe(record: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the description: finding, action and resolution."""
    if description := text(record, "description"):
        yield description
    for what, member in (
        ("Command line", "cmdline"),
        ("Action taken by Falcon", "pattern_disposition_description"),
        ("Resolved as", "resolution"),
        ("Group", "aggregate_id"),
    ):
        if value := text(record, member):
            yield f"{what}: {value}"
    if record.get("show_in_ui") is False:
        yield "Hidden in the console"


_TACTIC_FIELDS = ("tactic_id", "tactic", "mitre_attack.tactic_id", "mitre_attack.tactic")


def _find_techniques(record: dict[str, Any]) -> Iterator[str]:
    for holder in (record, *children(record, "mitre_attack")):
        yield from filter_techniques(
            texts(holder, "technique_id")
        )  # some IDs are CrowdStrike's own


def _build_url(record: dict[str, Any], name: str, console: str) -> str:
    """Return the URL of an alert, which is usually part of the alert."""
    url = text(record, "falcon_host_link")
    if url and url.startswith("https://"):
        return url
    return f"{console}/unified-detections/{quote(name, safe=':')}"
