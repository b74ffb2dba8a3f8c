"""Mapping of investigations to incidents, with the alerts in them and the entities of those.

https://help.rapid7.com/insightidr/en-us/api/v2/docs.html and, for the keys of evidence,
https://docs.rapid7.com/insightidr/event-type-keys/
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from itertools import chain
from typing import Any

from tocsin import Alert, Incident, IncidentStatus, Severity, parse_tactics
from tocsin_connectors.siem.entity_fields import FieldContent, FieldTable, TableFinds
from tocsin_connectors.siem.records import (
    EntityRoles,
    child,
    children,
    filter_techniques,
    parse_optional_time,
    parse_utc,
    require_text,
    text,
    texts,
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
STATUSES: Mapping[str, IncidentStatus] = {
    "open": IncidentStatus.NEW,
    "investigating": IncidentStatus.ACTIVE,
    "waiting": IncidentStatus.ACTIVE,
    "closed": IncidentStatus.CLOSED,
}
STATUS_WORDS: Mapping[IncidentStatus, str] = {
    IncidentStatus.NEW: "OPEN",
    IncidentStatus.ACTIVE: "INVESTIGATING",
    IncidentStatus.CLOSED: "CLOSED",
}
_PROCESSES = ("process", "parent_process")
ENTITY_TABLE = FieldTable(
    sources={
        FieldContent.HOST: ("source_asset", "source_asset_address", "source_address"),
        FieldContent.ADDRESS: ("source_ip",),
        FieldContent.USER: ("source_account",),
        FieldContent.PRINCIPAL: ("source_user",),
    },
    targets={
        FieldContent.HOST: (
            *("destination_asset", "destination_asset_address", "destination_address"),
        ),
        FieldContent.ADDRESS: ("destination_ip",),
        FieldContent.USER: ("destination_account", "destination_local_account"),
        FieldContent.PRINCIPAL: ("destination_user",),
    },
    others={
        FieldContent.HOST: ("asset", "hostname"),
        FieldContent.USER: ("account",),
        FieldContent.PRINCIPAL: ("user",),
        FieldContent.DOMAIN: ("query", "url_host"),
        FieldContent.URL: ("url",),
        FieldContent.FILE: ("file_path",),
        FieldContent.PROGRAM: tuple(
            f"{name}.{member}" for name in _PROCESSES for member in ("exe_path", "name")
        ),
        FieldContent.FILE_HASH: tuple(
            f"{name}.{holder}.{kind}"
            for name in _PROCESSES
            for holder in ("hash", "exe_file.hashes")
            for kind in ("md5", "sha1", "sha256")
        ),
    },
)
"""Keys of evidence. Of `user`, which may be a person's name, only email addresses are taken."""
_MAX_ENTITIES = 200
_SHORT_ID = re.compile(r":investigation:([0-9A-Za-z]{1,64})$")


def parse_times(record: dict[str, Any]) -> tuple[datetime, datetime]:
    """Return when an investigation was created and when it last changed, or was viewed.

    Raises ValueError if it was created at no valid time.
    """
    value = require_text(record, "created_time")
    created_at = parse_utc(value)
    later = (text(record, name) for name in ("last_accessed", "latest_alert_time"))
    return created_at, max([created_at, *(parse_utc(moment) for moment in later if moment)])


def build_incident(given: Mapping[str, Any], region: str, web_url: str | None) -> Incident:
    """Return the incident of an investigation, with the alerts in the record.

    Each alert may have `details` and `evidence`. Without `web_url`, the link is built from the
    region and a token in the details. Raises ValueError if the investigation has no RRN or time.
    """
    record = dict(given)
    name = require_text(record, "rrn")
    created_at, changed_at = parse_times(record)
    alerts = children(record, "alerts")
    details = [child(alert, "details") for alert in alerts]
    words = [word for detail in details for word in texts(child(detail, "rule"), "mitre_tcodes")]
    raw_severity, raw_status = text(record, "priority"), text(record, "status")
    severity = SEVERITIES.get((raw_severity or "").casefold())
    found = _find_entities(alerts)
    if web_url is None and (token := _find_token(details)):
        web_url = f"https://{region}.idr.insight.rapid7.com/op/{token}"
    number = _SHORT_ID.search(name)
    return Incident(
        external_id=name,
        external_number=number and number[1],
        title=text(record, "title") or f"Investigation {name}",
        description="\n".join(_describe(record)),
        severity=severity or Severity.MEDIUM,
        raw_severity=raw_severity,
        severity_assumed=severity is None,
        status=STATUSES.get((raw_status or "").casefold(), IncidentStatus.NEW),
        raw_status=raw_status,
        occurred_at=_find_start(record, alerts) or created_at,
        changed_at=changed_at,
        source_url=f"{web_url}#/investigations/{name}" if web_url else None,
        techniques=union([filter_techniques(words)]),
        tactics=union([parse_tactics(words)]),
        entities=found.entities,
        sources=found.roles.sources,
        targets=found.roles.targets,
        alerts=union([_build_alerts(alerts, severity or Severity.MEDIUM)]),
    )


def _find_entities(alerts: Iterable[dict[str, Any]]) -> TableFinds:
    """Return the entities of alerts: of the keys that their rules name, and of evidence."""
    found = [ENTITY_TABLE.find(data, _MAX_ENTITIES) for data in _list_data(alerts)]
    return TableFinds(
        union(part.entities for part in found)[:_MAX_ENTITIES],
        EntityRoles.merge(part.roles for part in found),
    )


def _list_data(alerts: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for alert in alerts:
        for key in children(child(alert, "details"), "rule_keys_of_interest"):
            if name := text(key, "key"):
                yield {name: key.get("values")}
        for piece in children(alert, "evidence"):
            yield parse_data(piece)


def parse_data(piece: dict[str, Any]) -> dict[str, Any]:
    """Return the event in a piece of evidence, which may be an object or its JSON."""
    data = piece.get("data")
    if isinstance(data, str):
        with suppress(ValueError, RecursionError):
            data = json.loads(data)
    return data if isinstance(data, dict) else {}


def _find_token(details: Iterable[dict[str, Any]]) -> str | None:
    tokens = (text(child(detail, "organization"), "product_token") for detail in details)
    return next((token for token in tokens if token and token.isalnum()), None)


def _find_start(record: dict[str, Any], alerts: Iterable[dict[str, Any]]) -> datetime | None:
    """Return the time of the first event, or of the first alert."""
    seen = [parse_optional_time(alert, "first_event_time") for alert in alerts]
    first = parse_optional_time(record, "first_alert_time")
    return min(filter(None, chain(seen, [first])), default=None)


def _build_alerts(records: Iterable[dict[str, Any]], severity: Severity) -> Iterator[Alert]:
    """Yield the alerts; one without a priority has the severity of the investigation."""
    for record in records:
        name = text(record, "id")
        at = parse_optional_time(record, "first_event_time") or parse_optional_time(
            record, "created_time"
        )
        word = text(child(record, "details"), "priority")
        if name and at:
            yield Alert(
                external_id=name,
                title=text(record, "title") or text(record, "alert_type") or name,
                severity=SEVERITIES.get((word or "").casefold(), severity),
                occurred_at=at,
                rule=_get_rule(record),
                record=record,
            )


def _get_rule(record: dict[str, Any]) -> str | None:
    """Return the name of the detection rule, or else its RRN; legacy alerts have neither."""
    rule = child(record, "detection_rule_rrn")  # some responses have the RRN alone in its place
    return text(rule, "rule_name") or text(rule, "rule_rrn") or text(record, "detection_rule_rrn")


def _describe(record: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the description: source, disposition, tags."""
    for what, member in (("Source", "source"), ("Disposition", "disposition")):
        if (value := text(record, member)) and value != "UNDECIDED":
            yield f"{what}: {value}"
    if tags := texts(record, "tags"):
        yield f"Tags: {', '.join(tags)}"
