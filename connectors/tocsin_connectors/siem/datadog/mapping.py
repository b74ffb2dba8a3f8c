"""Mapping of security signals to incidents, their entities, severities and states.

https://docs.datadoghq.com/api/latest/security-monitoring/ and, for the attributes of signals and
logs, https://docs.datadoghq.com/standard-attributes/. API responses contain the attributes of a
signal in `attributes.attributes` or in `attributes.custom`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from tocsin import Alert, Incident, IncidentStatus, Severity, parse_tactics
from tocsin_connectors.siem.entity_fields import FieldContent, FieldTable, TableFinds
from tocsin_connectors.siem.records import (
    EntityRoles,
    child,
    children,
    describe_value,
    number,
    parse_utc,
    require_text,
    text,
    text_at,
    texts,
    union,
    value_at,
)

SEVERITIES: Mapping[str, Severity] = {
    "info": Severity.INFORMATIONAL,
    "low": Severity.LOW,
    "medium": Severity.MEDIUM,
    "high": Severity.HIGH,
    "critical": Severity.CRITICAL,
}
STATES: Mapping[str, IncidentStatus] = {
    "open": IncidentStatus.NEW,
    "under_review": IncidentStatus.ACTIVE,
    "archived": IncidentStatus.CLOSED,
}
STATE_WORDS: Mapping[IncidentStatus, str] = {status: word for word, status in STATES.items()}
_SOURCES = {
    FieldContent.ADDRESS: ("network.client.ip",),
}
_TARGETS = {
    FieldContent.ADDRESS: ("network.destination.ip",),
}
_OTHERS = {
    FieldContent.HOST: ("hostname", "host"),
    FieldContent.USER: ("usr.id", "usr.name"),
    FieldContent.EMAIL: ("usr.email",),
    FieldContent.DOMAIN: ("dns.question.name", "http.url_details.host"),
    FieldContent.URL: ("http.url",),
    FieldContent.PROGRAM: (
        *("process.executable.path", "process.executable.name"),
        *("process.parent.executable.path", "process.parent.executable.name"),
    ),
    FieldContent.FILE: ("file.path",),
    FieldContent.FILE_HASH: ("file.hashes", "process.executable.hashes"),
    FieldContent.CLOUD_RESOURCE: ("resource_id", "container.id"),
}
LOG_TABLE = FieldTable(sources=_SOURCES, targets=_TARGETS, others=_OTHERS)
"""Standard attributes of signals and logs."""
SAMPLE_TABLE = FieldTable(
    prefix="samples.content.custom.", sources=_SOURCES, targets=_TARGETS, others=_OTHERS
)
"""The same in the logs that a signal has as samples."""
_MAX_ENTITIES = 200
_ENTITY = re.compile(r"@?([\w.]{1,100}):(.+)", re.DOTALL)
_TECHNIQUE_TAG = re.compile(r"technique:(t\d{4}(?:\.\d{3})?)(?:-|$)", re.IGNORECASE)
_TACTIC_TAG = re.compile(r"tactic:(?:(ta\d{4})(?:-|$)|(.+))", re.IGNORECASE)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def get_custom(record: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes that the rule and the logs gave to a signal."""
    attributes = child(record, "attributes")
    return child(attributes, "attributes") or child(attributes, "custom")


def parse_state(record: dict[str, Any]) -> tuple[IncidentStatus, str | None]:
    """Return the triage state of a signal, and Datadog's word for it."""
    word = text_at(get_custom(record), "workflow.triage.state")
    return STATES.get((word or "").casefold(), IncidentStatus.NEW), word


def parse_times(record: dict[str, Any]) -> tuple[datetime, datetime]:
    """Return when a signal was made, and when it last changed, as far as it says so.

    A signal changes with its triage, and while further logs match. Raises ValueError if it has no
    valid timestamp.
    """
    value = text(child(record, "attributes"), "timestamp")
    if value is None:
        stamp = child(record, "attributes").get("timestamp")
        raise ValueError(f"attributes.timestamp is {describe_value(stamp)}")
    made_at, custom = parse_utc(value), get_custom(record)
    times = [made_at]
    if seen := text_at(custom, "workflow.last_seen"):
        times.append(parse_utc(seen))
    triaged = number(child(child(custom, "workflow"), "triage"), "stateUpdateTimestamp")
    if triaged is not None:
        try:
            times.append(_EPOCH + timedelta(milliseconds=triaged))
        except OverflowError as error:
            raise ValueError(f"the time {triaged} is out of range") from error
    return made_at, max(times)


def find_entities(record: dict[str, Any]) -> TableFinds:
    """Return the entities of a signal: of its attributes, its groups and its samples."""
    attributes, custom = child(record, "attributes"), get_custom(record)
    found = [
        LOG_TABLE.find({"host": attributes.get("host")}, _MAX_ENTITIES),
        *(LOG_TABLE.find({name: value}, _MAX_ENTITIES) for name, value in _list_groups(custom)),
        LOG_TABLE.find(custom, _MAX_ENTITIES),
        SAMPLE_TABLE.find({"samples": custom.get("samples")}, _MAX_ENTITIES),
    ]
    return TableFinds(
        union(part.entities for part in found)[:_MAX_ENTITIES],
        EntityRoles.merge(part.roles for part in found),
    )


def _list_groups(custom: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield attribute and value of texts such as `@usr.id:root`, which signals are grouped by."""
    for value in texts(custom, "entities"):
        if match := _ENTITY.fullmatch(value):
            yield match[1], match[2]


def build_incident(given: Mapping[str, Any], console: str) -> Incident:
    """Return the incident of a signal; `console` is the URL of the web interface.

    Raises ValueError if the signal has no ID or no timestamp.
    """
    record = dict(given)
    name = require_text(record, "id")
    made_at, changed_at = parse_times(record)
    attributes, custom = child(record, "attributes"), get_custom(record)
    word = text(attributes, "status") or text_at(custom, "triggeringRuleCase.status")
    severity = SEVERITIES.get((word or "").casefold())
    message = text(attributes, "message") or text(custom, "message") or ""
    title = text_at(custom, "title", "workflow.rule.name") or message.partition("\n")[0]
    status, state = parse_state(record)
    started = text_at(custom, "workflow.first_seen")
    occurred_at = parse_utc(started) if started else made_at
    found = find_entities(record)
    tags = texts(attributes, "tags")
    return Incident(
        external_id=name,
        title=title or f"Signal {name}",
        description="\n".join(_describe(custom, message, title)),
        severity=severity or Severity.MEDIUM,
        raw_severity=word,
        severity_assumed=severity is None,
        status=status,
        raw_status=state,
        occurred_at=occurred_at,
        changed_at=changed_at,
        source_url=f"{console}/security?event={quote(name, safe='')}",
        techniques=union([_find_techniques(tags)]),
        tactics=union([parse_tactics(_list_tactics(tags))]),
        entities=found.entities,
        sources=found.roles.sources,
        targets=found.roles.targets,
        alerts=(
            Alert(
                external_id=name,
                title=text_at(custom, "workflow.rule.name") or title or f"Signal {name}",
                severity=severity or Severity.MEDIUM,
                occurred_at=occurred_at,
                rule=text_at(custom, "workflow.rule.name", "workflow.rule.id"),
                record=record,
            ),
        ),
    )


def _describe(custom: dict[str, Any], message: str, title: str) -> Iterator[str]:
    """Yield the lines of the description: message, rule, archive comment."""
    if message and message != title:
        yield message
    rule = text_at(custom, "workflow.rule.name")
    if rule and rule != title:
        yield f"Rule: {rule}"
    triage = child(child(custom, "workflow"), "triage")
    for what, member in (("Archived as", "archiveReason"), ("Comment", "archiveComment")):
        if (value := text(triage, member)) and value != "none":
            yield f"{what}: {value}"


def _find_techniques(tags: list[str]) -> Iterator[str]:
    """Yield the techniques in tags such as `technique:t1556-modify-authentication-process`."""
    for tag in tags:
        if match := _TECHNIQUE_TAG.match(tag):
            yield match[1].upper()


def _list_tactics(tags: list[str]) -> Iterator[str]:
    """Yield the tactics in tags such as `tactic:ta0003-persistence`, by ID or by name."""
    for tag in tags:
        if match := _TACTIC_TAG.match(tag):
            yield match[1] or match[2]


def was_triaged(record: dict[str, Any]) -> bool:
    """Return whether somebody changed a signal, at a time that it does not say."""
    triage = child(child(get_custom(record), "workflow"), "triage")
    is_touched = text(triage, "state") not in {None, "open"} or any(
        text(updater, "handle") for updater in children(triage, "updater")
    )
    return is_touched and value_at(triage, "stateUpdateTimestamp") is None
