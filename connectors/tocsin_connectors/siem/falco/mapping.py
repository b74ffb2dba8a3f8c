"""Mapping of Falco alerts to incidents and events.

https://falco.org/docs/concepts/outputs/formatting/ and /docs/reference/rules/
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from tocsin import (
    Alert,
    EntityKind,
    Incident,
    Relation,
    RelationType,
    Severity,
    SiemEvent,
    parse_tactics,
)
from tocsin_connectors.siem.falco.entities import find_entities, find_machines, get_fields
from tocsin_connectors.siem.files import name_alert, name_group
from tocsin_connectors.siem.records import (
    FlowPaths,
    child,
    filter_techniques,
    find_flow,
    number,
    parse_utc,
    relate,
    require_text,
    text,
    texts,
    union,
)

_SEVERITIES: Mapping[str, Severity] = {
    "emergency": Severity.CRITICAL,
    "alert": Severity.CRITICAL,
    "critical": Severity.CRITICAL,
    "error": Severity.HIGH,
    "warning": Severity.MEDIUM,
    "notice": Severity.LOW,
    "informational": Severity.INFORMATIONAL,
    "info": Severity.INFORMATIONAL,
    "debug": Severity.INFORMATIONAL,
}
"""Severities by priority. https://falco.org/docs/concepts/rules/basic-elements/"""
_TACTIC_TAG = "mitre_"
_PREFIX = re.compile(
    r"(?:\d{4}-\d\d-\d\dT)?\d\d:\d\d:\d\d\.\d{1,9}(?:[+-]\d{4}|Z)?: [A-Z][a-z]{1,20} "
)
"""Time and priority that `output` begins with."""
_FLOW = FlowPaths(
    source=("fd.cip",),
    source_port=("fd.cport",),
    target=("fd.sip",),
    target_port=("fd.sport",),
    protocol=("fd.l4proto",),
)
_IDENTITY_FIELDS = ("evt.num", "proc.pid", "thread.tid", "proc.cmdline", "fd.name", "evt.type")
_EVENT_FIELDS = (
    *("evt.type", "evt.res", "evt.args", "user.name", "user.uid", "user.loginuid", "proc.name"),
    *("proc.cmdline", "proc.exepath", "proc.cwd", "proc.pid", "proc.ppid", "proc.pname"),
    *("proc.pcmdline", "proc.tty", "fd.name", "fd.type", "fd.cip", "fd.cport", "fd.sip"),
    *("fd.sport", "fd.l4proto", "container.id", "container.name", "container.image.repository"),
    *("container.image.tag", "k8s.ns.name", "k8s.pod.name", "ka.verb", "ka.user.name"),
    *("ka.target.resource", "ka.target.namespace", "ka.target.name", "ct.name", "ct.region"),
)
"""Output fields that an analyst would look at."""


def parse_time(record: dict[str, Any]) -> datetime:
    """Return the alert's time. Raises ValueError if there is no valid one."""
    return parse_utc(require_text(record, "time"))


def get_rule(record: dict[str, Any]) -> str:
    """Return the name of the rule. Raises ValueError if it is missing."""
    return require_text(record, "rule")


def build_incident(record: dict[str, Any], window: timedelta) -> Incident:
    """Return the incident of an alert, by rule, pod or host, and clock interval.

    Raises ValueError if the rule or a valid time is missing.
    """
    rule, occurred_at = get_rule(record), parse_time(record)
    word = text(record, "priority")
    severity = _SEVERITIES.get((word or "").casefold())
    found, machines = find_entities(record), find_machines(record)
    tags = texts(record, "tags")
    alert = Alert(
        external_id=_name_alert(record, rule),
        title=rule,
        severity=severity or Severity.MEDIUM,
        occurred_at=occurred_at,
        rule=rule,
        flow=find_flow(child(record, "output_fields"), _FLOW),
        record=record,
    )
    return Incident(
        external_id=name_group(occurred_at, window, rule, machines[-1].value if machines else "-"),
        title=rule,
        description=_describe(record),
        severity=alert.severity,
        raw_severity=word,
        severity_assumed=severity is None,
        occurred_at=occurred_at,
        techniques=union([filter_techniques(tag.upper() for tag in tags)]),
        tactics=union([_find_tactics(tags)]),
        entities=found.entities,
        sources=found.roles.sources,
        targets=found.roles.targets,
        alerts=(alert,),
    )


def _name_alert(record: dict[str, Any], rule: str) -> str:
    """Return the ID of an alert: its UUID (Falcosidekick), or else one of its content."""
    if identifier := text(record, "uuid"):
        return identifier
    fields = get_fields(record)
    parts = [record.get(key) for key in ("time", "hostname", "source", "output")]
    return name_alert([rule, *parts, *(fields.get(key) for key in _IDENTITY_FIELDS)])


def _find_tactics(tags: list[str]) -> Iterator[str]:
    names = (tag.removeprefix(_TACTIC_TAG) for tag in tags if tag.startswith(_TACTIC_TAG))
    yield from parse_tactics(names)


def _describe(record: dict[str, Any]) -> str:
    """Return what Falco says, without the time and the priority."""
    return text(record, "message") or _PREFIX.sub("", text(record, "output") or "", count=1)


def build_event(record: dict[str, Any]) -> SiemEvent:
    """Return the event of an alert. Raises ValueError if the rule or a valid time is missing."""
    rule, at = get_rule(record), parse_time(record)
    found, fields = find_entities(record), get_fields(record)
    shown = ((name, text(fields, name) or number(fields, name)) for name in _EVENT_FIELDS)
    return SiemEvent(
        external_id=text(record, "uuid"),
        occurred_at=at,
        summary=" ".join(f"{rule}: {_describe(record)}".split()).rstrip(": "),
        entities=found.entities,
        relations=union([_find_relations(record, at)]),
        fields={name: value for name, value in shown if value is not None},
    )


def _find_relations(record: dict[str, Any], at: datetime) -> Iterator[Relation]:
    """Yield connections, and processes that run on hosts."""
    found = find_entities(record)
    sources, targets = (
        [entity for entity in side if entity.kind is EntityKind.IP] for side in found.roles
    )
    yield from relate(sources, RelationType.CONNECTED_TO, targets, at)
    hosts = [entity for entity in find_machines(record) if entity.kind is EntityKind.HOST]
    programs = [entity for entity in found.entities if entity.kind is EntityKind.PROCESS]
    yield from relate(programs, RelationType.EXECUTED_ON, hosts, at)
