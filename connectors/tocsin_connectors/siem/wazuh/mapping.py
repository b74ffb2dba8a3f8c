"""Mapping of Wazuh 4 alerts and Wazuh 5 findings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tocsin import Entity, EntityKind, NetworkFlow, Severity
from tocsin_connectors.siem.entity_fields import FieldContent, TableFinds, parse_field
from tocsin_connectors.siem.indices.ecs_fields import ECS, TENANT_FIELDS, is_of_tenant
from tocsin_connectors.siem.records import (
    ECS_FLOW,
    EntityRoles,
    FlowPaths,
    describe_value,
    filter_techniques,
    find_document_roles,
    find_flow,
    find_tactics,
    parse_utc,
    text_at,
    texts,
    texts_at,
    union,
    value_at,
)
from tocsin_connectors.siem.wazuh.entity_fields import ALERT_FIELDS

TIME_FIELD = "@timestamp"
"""Sort field of both layouts; 5.x has no `timestamp`."""
MAX_ENTITIES = 200
UNKNOWN = "-"
"""Placeholder for an unnamed agent."""
# Level 0 to 15, https://documentation.wazuh.com/current/user-manual/ruleset/rules-classification.html
MIN_LEVELS = {
    Severity.CRITICAL: 15,
    Severity.HIGH: 12,
    Severity.MEDIUM: 7,
    Severity.LOW: 4,
    Severity.INFORMATIONAL: 0,
}
"""Lowest 4.x level of each severity; the mapping is Tocsin's."""
SEVERITY_LEVELS = {severity.value.casefold(): severity for severity in Severity}
"""Levels of 5.x."""
_MAX_LEVEL = 16
_FLOW = FlowPaths(
    source=("data.srcip", "data.src_ip", *ECS_FLOW.source),
    source_port=("data.srcport", "data.src_port", *ECS_FLOW.source_port),
    target=("data.dstip", "data.dest_ip", *ECS_FLOW.target),
    target_port=("data.dstport", "data.dest_port", *ECS_FLOW.target_port),
    protocol=("data.protocol", "data.proto", *ECS_FLOW.protocol),
    direction=("data.direction", *ECS_FLOW.direction),
)


@dataclass(frozen=True, slots=True)
class WazuhRule:
    """Rule that raised an alert."""

    title: str
    severity: Severity | None
    """None if the level is unknown."""
    level: str | None
    """Level in Wazuh's terms."""


@dataclass(frozen=True, slots=True)
class WazuhDetection:
    """One alert or finding."""

    document_id: str
    at: datetime
    """Timestamp set by Wazuh."""
    rule_id: str
    agent_id: str
    agent_name: str
    rule: WazuhRule
    flow: NetworkFlow | None
    record: Any = field(compare=False, repr=False)


def parse_detection(hit: dict[str, Any]) -> WazuhDetection:
    """Parse a hit. Raises ValueError if it has no ID, time or rule."""
    document, name = hit.get("_source"), hit.get("_id")
    if not isinstance(name, str) or not name:
        raise ValueError(f"_id is {describe_value(name)}")
    if (rule_id := get_rule_id(document)) is None:
        raise ValueError(f"rule.id is {describe_value(value_at(document, 'rule'))}")
    return WazuhDetection(
        document_id=name,
        at=_parse_time(document),
        rule_id=rule_id,
        agent_id=text_at(document, "wazuh.agent.id", "agent.id") or UNKNOWN,
        agent_name=text_at(document, "wazuh.agent.name", "agent.name") or UNKNOWN,
        rule=parse_rule(document),
        flow=find_flow(document, _FLOW),
        record=document,
    )


def get_rule_id(document: Any) -> str | None:
    """Return the rule ID in a document, or None."""
    return text_at(document, "wazuh.rule.id", "rule.id")


def _parse_time(document: Any) -> datetime:
    value = value_at(document, TIME_FIELD) or value_at(document, "timestamp")
    if isinstance(value, str):
        return parse_utc(value)
    raise ValueError(f"{TIME_FIELD} is {describe_value(value)}")


def parse_rule(document: Any) -> WazuhRule:
    """Return the rule in a document, as far as it is known."""
    title = text_at(document, "wazuh.rule.title", "rule.description", "rule.title")
    level = text_at(document, "wazuh.rule.level", "rule.level")
    return WazuhRule(title or f"Wazuh rule {get_rule_id(document)}", _parse_severity(level), level)


def _parse_severity(level: str | None) -> Severity | None:
    if level is None:
        return None
    if (known := SEVERITY_LEVELS.get(level.casefold())) is not None:
        return known
    with suppress(ValueError):
        number = int(level)
        if 0 <= number <= _MAX_LEVEL:
            return next(severity for severity, lowest in MIN_LEVELS.items() if number >= lowest)
    return None


def find_techniques(document: Any) -> Iterator[str]:
    """Yield the ATT&CK techniques of the rule."""
    mitre = value_at(document, "wazuh.rule.mitre") or value_at(document, "rule.mitre")
    for path in ("id", "technique.id", "subtechnique.id"):
        found = value_at(mitre, path)
        yield from filter_techniques(text.upper() for text in texts({"": found}, ""))


def find_rule_tactics(document: Any) -> Iterator[str]:
    """Yield the ATT&CK tactics of the rule."""
    mitre = value_at(document, "wazuh.rule.mitre") or value_at(document, "rule.mitre")
    yield from find_tactics(mitre, "tactic", "tactic.id", "tactic.name")


def find_entities(document: Any) -> tuple[Entity, ...]:
    """Return the entities in the known fields of a document, and its agent."""
    return find_document_entities(document).entities


def find_document_entities(document: Any) -> TableFinds:
    """Return the entities in the known fields of a document with its agent, and their roles.

    The agent is the target of a remote source, and the source of what happens on it alone. Between
    two addresses it may be a sensor, and has no role.
    """
    table = _FIELDS_OF_TENANTS if is_of_tenant(document) else _FIELDS
    found, agent = table.find(document, MAX_ENTITIES), _parse_agent(document)
    entities = union([agent, found.entities])[:MAX_ENTITIES]
    if value_at(document, "wazuh.rule") is not None:
        return TableFinds(entities, find_document_roles(document))
    roles = found.roles
    ends = [any(entity.kind is EntityKind.IP for entity in side) for side in roles]
    if any(ends) and not all(ends):
        roles = EntityRoles(roles.sources, union([roles.targets, agent]))
    elif not any(ends):
        roles = EntityRoles(union([roles.sources, agent]), roles.targets)
    return TableFinds(entities, roles)


_FIELDS = ECS | ALERT_FIELDS
_FIELDS_OF_TENANTS = _FIELDS.without(TENANT_FIELDS)


def _parse_agent(document: Any) -> tuple[Entity, ...]:
    """Return the name and the addresses of the agent."""
    agent = value_at(document, "wazuh.agent") or value_at(document, "agent")
    name = text_at(agent, "name", "host.hostname", "host.name")
    addresses = [*texts_at(agent, "ip"), *texts_at(agent, "host.ip")]
    return union(
        [
            parse_field(FieldContent.HOST, name or ""),
            *(parse_field(FieldContent.ADDRESS, address) for address in addresses),
        ]
    )
