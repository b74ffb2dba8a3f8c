"""Mapping of Graylog events to incidents, their entities, priorities and techniques.

`EventDto` of https://github.com/Graylog2/graylog2-server. Entities are in the custom fields that an
event definition fills, and in the fields that it groups by. The fields have names from the
information model (https://go2docs.graylog.org/illuminate-current/schema/), names from ECS, or other
common names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from tocsin import Alert, Incident, Severity, parse_tactics
from tocsin_connectors.siem.entity_fields import FieldContent, FieldTable, TableFinds
from tocsin_connectors.siem.graylog.client import PROCESSED
from tocsin_connectors.siem.indices.ecs_fields import ECS, LOGS
from tocsin_connectors.siem.records import (
    child,
    describe_value,
    filter_techniques,
    number,
    parse_utc,
    require_text,
    text,
    texts,
    union,
)

PRIORITIES: Mapping[int, Severity] = {
    0: Severity.INFORMATIONAL,
    1: Severity.LOW,
    2: Severity.MEDIUM,
    3: Severity.HIGH,
    4: Severity.CRITICAL,
}
"""Severities by priority. Before version 6.0, there were 1 to 3 only, with the same meaning."""
_HASHES = ("md5", "sha1", "sha256", "sha512")
INFORMATION_MODEL = FieldTable(
    sources={
        FieldContent.ADDRESS: ("source_ip", "source_nat_ip"),
        FieldContent.NAME: ("source_hostname",),
        FieldContent.USER: ("source_user_name",),
    },
    targets={
        FieldContent.ADDRESS: ("destination_ip", "destination_nat_ip"),
        FieldContent.NAME: ("destination_hostname",),
        FieldContent.USER: ("destination_user_name",),
    },
    others={
        FieldContent.ADDRESS: ("host_ip", "associated_ip"),
        FieldContent.HOST: ("host_hostname",),
        FieldContent.DOMAIN: ("query_request", "dns_query", "http_host"),
        FieldContent.USER: ("user_name", "associated_user_name"),
        FieldContent.EMAIL: ("user_email",),
        FieldContent.PROGRAM: ("process_path", "process_name", "process_parent_path"),
        FieldContent.FILE: ("file_path",),
        FieldContent.FILE_HASH: (*(f"hash_{kind}" for kind in _HASHES), "associated_hash"),
        FieldContent.URL: ("http_url", "http_uri"),
    },
)
"""Fields of Graylog's information model."""
EVENT_TABLE = ECS | LOGS | INFORMATION_MODEL
_MAX_ENTITIES = 200
_SIGMA_TAG = re.compile(r"sigma_rule_tag_\d{1,3}")


def parse_time(value: object) -> datetime:
    """Return a time, which is in UTC if it has no zone. Raises ValueError if it is invalid.

    Stored events have times such as `2019-08-21 07:48:01.326`.
    """
    if not isinstance(value, str):
        raise ValueError(f"the time is {describe_value(value)}")  # noqa: TRY004 - as every record's
    try:
        return parse_utc(value)
    except ValueError:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is not None:
            raise
        return moment.replace(tzinfo=UTC)


def find_entities(record: dict[str, Any]) -> TableFinds:
    """Return the entities in the custom fields of an event, and in those that it groups by."""
    fields = child(record, "group_by_fields") | child(record, "fields")
    return EVENT_TABLE.find(fields, _MAX_ENTITIES)


def build_incident(given: Mapping[str, Any], console: str) -> Incident:
    """Return the incident of an event; `console` is the URL of the web interface.

    Raises ValueError if the event has no ID or no time.
    """
    record = dict(given)
    name = require_text(record, "id")
    made_at = parse_time(record.get(PROCESSED))
    occurred_at = parse_time(record.get("timestamp") or record.get(PROCESSED))
    priority = number(record, "priority")
    severity = None if priority is None else PRIORITIES.get(priority)
    definition = child(record, "event_definition")
    title = text(record, "message") or text(definition, "title") or f"Event {name}"
    found = find_entities(record)
    return Incident(
        external_id=name,
        title=title,
        description="\n".join(_describe(record, definition, title)),
        severity=severity or Severity.MEDIUM,
        raw_severity=None if priority is None else str(priority),
        severity_assumed=severity is None,
        occurred_at=occurred_at,
        changed_at=made_at,
        source_url=f"{console}/alerts/{name}/replay-search" if name.isalnum() else None,
        techniques=union([filter_techniques(_list_attacks(record))]),
        tactics=union([parse_tactics(_list_attacks(record))]),
        entities=found.entities,
        sources=found.roles.sources,
        targets=found.roles.targets,
        alerts=(
            Alert(
                external_id=name,
                title=text(definition, "title") or title,
                severity=severity or Severity.MEDIUM,
                occurred_at=occurred_at,
                rule=text(definition, "title") or text(record, "event_definition_id"),
                record=record,
            ),
        ),
    )


def _list_attacks(record: dict[str, Any]) -> Iterator[str]:
    """Yield the ATT&CK IDs of an event: from version 7.1 a field, before that tags of Sigma."""
    yield from (value.upper() for value in texts(record, "tactics_techniques"))
    fields = child(record, "fields")
    for name in fields:
        if _SIGMA_TAG.fullmatch(name) and (tag := text(fields, name)):
            word = tag.lower().removeprefix("attack.")
            yield word.upper() if re.fullmatch(r"t[a\d]\d{3,4}(\.\d{3})?", word) else tag


def _describe(record: dict[str, Any], definition: dict[str, Any], title: str) -> Iterator[str]:
    """Yield the lines of the description: definition, key, conditions and next steps."""
    if (name := text(definition, "title")) and name != title:
        yield f"Event definition: {name}"
    if description := text(definition, "description"):
        yield description
    if keys := ", ".join(texts(record, "key_tuple")):
        yield f"Key: {keys}"
    for condition, value in child(record, "aggregation_conditions").items():
        if isinstance(value, int | float):
            yield f"Condition: {condition} = {value:g}"
    if steps := text(definition, "remediation_steps"):
        yield f"Remediation: {steps}"
