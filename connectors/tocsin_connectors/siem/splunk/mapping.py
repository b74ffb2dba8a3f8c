"""Mapping of findings, as the macro `notable` returns them, to incidents.

Fields: https://docs.splunk.com/Documentation/CIM/latest/User/Overview. Urgencies:
https://docs.splunk.com/Documentation/ES/latest/User/Howurgencyisassigned. The statuses are those
that Enterprise Security ships (`reviewstatuses`). Customers add their own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from tocsin import Alert, Entity, EntityKind, Incident, IncidentStatus, Severity, parse_tactics
from tocsin_connectors.siem.records import (
    EntityRoles,
    FlowPaths,
    children,
    describe_value,
    filter_techniques,
    find_flow,
    parse_entities,
    parse_utc,
    texts,
    union,
)
from tocsin_connectors.siem.splunk.spl import INDEXED, REVIEWED

URGENCIES = {
    "informational": Severity.INFORMATIONAL,
    "low": Severity.LOW,
    "medium": Severity.MEDIUM,
    "high": Severity.HIGH,
    "critical": Severity.CRITICAL,
}
STATUSES = {
    "0": IncidentStatus.NEW,
    "1": IncidentStatus.NEW,
    "2": IncidentStatus.ACTIVE,
    "3": IncidentStatus.ACTIVE,
    "4": IncidentStatus.CLOSED,
    "5": IncidentStatus.CLOSED,
}
"""By number: unassigned, new, in progress, pending, resolved, closed."""
STATUS_GROUPS = {
    "new": IncidentStatus.NEW,
    "open": IncidentStatus.ACTIVE,
    "closed": IncidentStatus.CLOSED,
}
"""By `status_group`, which custom statuses also have."""
STATUS_NUMBERS = {
    IncidentStatus.NEW: "1",
    IncidentStatus.ACTIVE: "2",
    IncidentStatus.CLOSED: "5",
}
"""Status numbers for write-back."""


_CIM_FIELDS: dict[EntityKind, tuple[str, ...]] = {
    EntityKind.IP: (*("src_ip", "dest_ip", "dvc_ip", "src_translated_ip", "dest_translated_ip"),),
    EntityKind.HOST: (
        *("src", "src_host", "src_dns", "src_nt_host", "dest", "dest_host", "dest_dns"),
        *("dest_nt_host", "dvc", "dvc_host", "orig_host"),
    ),
    EntityKind.USER: ("user", "src_user", "user_name", "src_user_name", "acct", "target_user"),
    EntityKind.DOMAIN: ("query", "answer", "domain", "url_domain"),
    EntityKind.URL: ("url", "http_url", "http_referrer"),
    EntityKind.FILE_HASH: ("file_hash", "process_hash", "parent_process_hash"),
    EntityKind.FILE: ("file_name", "file_path"),
    EntityKind.PROCESS: ("process_name", "parent_process_name"),
    EntityKind.EMAIL: ("recipient", "src_user", "return_addr", "orig_src", "sender"),
    EntityKind.CVE: ("cve",),
}
"""Fields that hold entities, by kind. A host or a domain may turn out to be an address."""
ENTITY_FIELDS: dict[EntityKind, tuple[str, ...]] = {
    **_CIM_FIELDS,
    EntityKind.IP: (
        *_CIM_FIELDS[EntityKind.IP],
        *_CIM_FIELDS[EntityKind.HOST],
        "answer",
        "risk_object",
    ),
    EntityKind.HOST: (*_CIM_FIELDS[EntityKind.HOST], "risk_object"),
    EntityKind.USER: (*_CIM_FIELDS[EntityKind.USER], "risk_object"),
}
"""Fields to search for an entity, by kind."""
_KNOWN_FIELDS = frozenset(name for names in _CIM_FIELDS.values() for name in names)
_FLOW = FlowPaths(
    source=("src_ip", "src"),
    source_port=("src_port",),
    target=("dest_ip", "dest"),
    target_port=("dest_port",),
    protocol=("transport",),
    direction=("direction",),
)
"""Fields of the Common Information Model, data model Network Traffic:
https://docs.splunk.com/Documentation/CIM/latest/User/NetworkTraffic"""
_RISK_OBJECTS = {"system": EntityKind.HOST, "user": EntityKind.USER}
_ARTIFACTS = {"asset": EntityKind.HOST, "identity": EntityKind.USER}
_ACCOUNT_PROPERTY = re.compile(
    r"(id|role|category|priority)$"
)  # other fields that `identity` lists
_DOTTED_NAME = re.compile(
    r"[^\s/]+\.[^\s/]+"
)  # `query` also holds searches, and names without a dot
_TACTIC_FIELDS = (
    "annotations.mitre_attack.mitre_tactic",
    "annotations.mitre_attack.mitre_tactic_id",
    "mitre_tactic",
    "mitre_tactic_id",
)
_TECHNIQUE_FIELDS = (
    "annotations.mitre_attack",
    "annotations.mitre_attack.mitre_technique_id",
    "mitre_technique_id",
)


def find_entities(record: dict[str, Any]) -> Iterator[Entity]:
    """Yield the entities of an event or a finding."""
    for kind, names in _CIM_FIELDS.items():
        for name in names:
            yield from _parse_field(record, name, kind)
    risks = zip(texts(record, "risk_object_type"), texts(record, "risk_object"), strict=False)
    for risk, value in risks:
        if kind_of_risk := _RISK_OBJECTS.get(risk.casefold()):
            yield from parse_entities(kind_of_risk, value)
    yield from _find_threat_match(record)


_SOURCE_FIELDS = {
    EntityKind.IP: ("src_ip",),
    EntityKind.HOST: ("src", "src_host", "src_dns", "src_nt_host"),
    EntityKind.USER: ("src_user", "src_user_name"),
    EntityKind.EMAIL: ("src_user", "return_addr", "orig_src", "sender"),
}
_TARGET_FIELDS = {
    EntityKind.IP: ("dest_ip",),
    EntityKind.HOST: ("dest", "dest_host", "dest_dns", "dest_nt_host"),
    EntityKind.EMAIL: ("recipient",),
    EntityKind.USER: ("target_user",),
}


def find_roles(record: dict[str, Any]) -> EntityRoles:
    """Return the source and the target of an event or a finding.

    Without a source, `dest` is the machine where the activity happened, and so its source
    (https://docs.splunk.com/Documentation/CIM/latest/User/Malware).
    """
    sources, targets = (
        union(_parse_field(record, name, kind) for kind, names in fields.items() for name in names)
        for fields in (_SOURCE_FIELDS, _TARGET_FIELDS)
    )
    if any(entity.kind in _MACHINES for entity in sources):
        return EntityRoles(sources, targets)
    machines = tuple(entity for entity in targets if entity.kind in _MACHINES)
    if not texts(record, "process_name") and not texts(record, "file_hash"):
        return EntityRoles(sources, targets)
    return EntityRoles(
        union([sources, machines]), tuple(entity for entity in targets if entity not in machines)
    )


_MACHINES = frozenset({EntityKind.IP, EntityKind.HOST})


def find_artifacts(record: dict[str, Any]) -> Iterator[Entity]:
    """Yield the entities in the fields that the detection declares as assets and identities.

    `extract_artifacts` is a JSON string: `{"asset": ["src"], "identity": ["user", "user_role"]}`.
    """
    for key, kind in _ARTIFACTS.items():
        for name in _list_encoded(record, "extract_artifacts", key):
            if name not in _KNOWN_FIELDS and not _ACCOUNT_PROPERTY.search(name):
                yield from _parse_field(record, name, kind)


def _find_threat_match(record: dict[str, Any]) -> Iterator[Entity]:
    """Yield the matched indicator of a threat match, of the kind of the field that matched."""
    matched = first_text(record, "threat_match_field") or ""
    for kind, names in _CIM_FIELDS.items():
        if matched in names:
            for value in texts(record, "threat_match_value"):
                yield from parse_entities(kind, value)


def find_techniques(record: dict[str, Any]) -> Iterator[str]:
    """Yield the ATT&CK IDs in the annotations of a finding."""
    named = [text for name in _TECHNIQUE_FIELDS for text in texts(record, name)]
    named += _list_encoded(record, "annotations", "mitre_attack")
    yield from filter_techniques(named)


def _find_tactics(record: dict[str, Any]) -> Iterator[str]:
    """Yield the ATT&CK tactics in the annotations of a finding."""
    yield from parse_tactics(text for name in _TACTIC_FIELDS for text in texts(record, name))
    for key in ("mitre_tactic", "mitre_tactic_id"):
        yield from parse_tactics(_list_encoded(record, "annotations", key))


def _parse_field(record: dict[str, Any], name: str, kind: EntityKind) -> Iterator[Entity]:
    for value in texts(record, name):
        if kind is not EntityKind.DOMAIN or _DOTTED_NAME.fullmatch(value):
            yield from parse_entities(kind, value)


def _list_encoded(record: dict[str, Any], name: str, key: str) -> list[str]:
    """Return the texts at a key of the JSON objects in a field."""
    found = []
    for encoded in texts(record, name):
        with suppress(ValueError, RecursionError):
            content = json.loads(encoded)
            found += [text for holder in children({"": content}, "") for text in texts(holder, key)]
    return found


_SECONDS = re.compile(r"\d{1,12}(\.\d+)?")
_TIME_OF_ID = re.compile(r"@@time(\d{1,12})")
_TOKEN = re.compile(r"\$([\w.:-]{1,100})\$")
_REVIEW_PATH = "/app/SplunkEnterpriseSecuritySuite/incident_review"
_VOLATILE = frozenset({"_serial", "_si"})  # position in the response, and responding server


def build_incident(record: dict[str, Any], web_url: str | None) -> Incident:
    """Return the incident of a finding. Raises ValueError if it has no ID or no time."""
    external_id = get_finding_id(record)
    urgency = first_text(record, "urgency") or first_text(record, "severity")
    severity = URGENCIES.get((urgency or "").casefold())
    roles = find_roles(record)
    occurred_at, title = _parse_occurrence(record), _render_text(record, "rule_title", "rule_name")
    title = title or _render_text(record, "search_name", "source") or "Splunk finding"
    return Incident(
        external_id=external_id,
        title=title,
        description=_render_text(record, "rule_description", "savedsearch_description"),
        severity=severity or Severity.MEDIUM,
        severity_assumed=severity is None,
        raw_severity=urgency,
        status=_parse_status(record),
        raw_status=first_text(record, "status_label") or first_text(record, "status"),
        occurred_at=occurred_at,
        changed_at=_parse_change_time(record),
        source_url=web_url and _build_url(web_url, external_id, occurred_at),
        techniques=union([find_techniques(record)]),
        tactics=union([_find_tactics(record)]),
        entities=union([find_entities(record), find_artifacts(record)]),
        sources=roles.sources,
        targets=roles.targets,
        alerts=(
            Alert(
                external_id=external_id,
                title=first_text(record, "search_name") or title,
                severity=severity or Severity.MEDIUM,
                occurred_at=occurred_at,
                rule=first_text(record, "search_name") or first_text(record, "source"),
                flow=find_flow(record, _FLOW),
                record=record,
            ),
        ),
    )


def select_stable(record: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a finding that differ only if the finding changes."""
    return {
        name: value
        for name, value in record.items()
        if name not in _VOLATILE and not name.endswith("_risk_score")
    }


def get_finding_id(record: dict[str, Any]) -> str:
    """Return the ID of a finding. Raises ValueError if it has none."""
    found = first_text(record, "event_id") or first_text(record, "finding_id")
    if found:
        return found
    if missing := first_text(record, "rule_id"):
        raise ValueError(
            f"{missing} was reviewed but not found, because it is older than `look_back`"
        )
    raise ValueError(f"event_id is {describe_value(record.get('event_id'))}")


def parse_id_time(identifier: str) -> datetime | None:
    """Return the time at the end of a version 8 ID: `...@@notable@@time1763800000`.

    Returns None for IDs without a time, as before version 8.
    """
    match = _TIME_OF_ID.search(identifier)
    return parse_time(match[1]) if match else None


def parse_time(value: str) -> datetime:
    """Parse seconds since 1970 or ISO 8601. Raises ValueError for anything else."""
    if not _SECONDS.fullmatch(value):
        return parse_utc(value)
    try:
        return datetime.fromtimestamp(float(value), UTC)
    except (OverflowError, OSError) as error:
        raise ValueError(f"the time {value!r} is out of range") from error


def first_text(record: dict[str, Any], name: str) -> str | None:
    """Return the first text of a field, or None if it has none."""
    return next(iter(texts(record, name)), None)


def _parse_occurrence(record: dict[str, Any]) -> datetime:
    value = first_text(record, "_time") or first_text(record, INDEXED)
    if value is None:
        raise ValueError(f"_time is {describe_value(record.get('_time'))}")
    return parse_time(value)


def _parse_change_time(record: dict[str, Any]) -> datetime | None:
    """Return the time of indexing or review, whichever is later, or None."""
    values = (first_text(record, name) for name in (INDEXED, "_indextime", REVIEWED))
    return max((parse_time(value) for value in values if value), default=None)


def _render_text(record: dict[str, Any], *names: str) -> str:
    """Return the first available text, with tokens (`$src$`) replaced by fields."""
    template = next((item for name in names if (item := first_text(record, name))), "")
    return _TOKEN.sub(lambda token: ", ".join(texts(record, token[1])) or token[0], template)


def _parse_status(record: dict[str, Any]) -> IncidentStatus:
    """Return the status of a finding, by the group of its status or else by number."""
    group = STATUS_GROUPS.get((first_text(record, "status_group") or "").casefold())
    if (first_text(record, "status_end") or "").casefold() in ("true", "1"):
        group = IncidentStatus.CLOSED
    return group or STATUSES.get(first_text(record, "status") or "", IncidentStatus.NEW)


def _build_url(web_url: str, identifier: str, occurred_at: datetime) -> str:
    """Return the URL of the finding in the analyst queue, limited to its time."""
    second = int(occurred_at.timestamp())
    query = {"earliest": second - 1, "latest": second + 2, "search": f'event_id="{identifier}"'}
    return f"{web_url}{_REVIEW_PATH}?{urlencode(query)}"
