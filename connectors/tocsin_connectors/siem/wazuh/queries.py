"""What the indexer is asked, in the fields of both layouts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tocsin import EntityKind, Severity
from tocsin_connectors.siem.indices.walk import build_time_query
from tocsin_connectors.siem.wazuh.alerts import MIN_LEVELS, SEVERITY_LEVELS, TIME_FIELD, UNKNOWN
from tocsin_connectors.siem.wazuh.groups import AlertGroup

RULE_FIELDS = ("rule.id", "wazuh.rule.id")
AGENT_FIELDS = ("agent.id", "wazuh.agent.id")
NAME_FIELDS = ("agent.name", "wazuh.agent.name")

ENTITY_FIELDS = {
    EntityKind.IP: (
        *("data.srcip", "data.dstip", "data.src_ip", "data.dest_ip", "agent.ip", "wazuh.agent.ip"),
        *("data.win.eventdata.ipAddress", "data.win.eventdata.sourceIp"),
        *("data.win.eventdata.destinationIp", "data.aws.source_ip_address", "data.client_ip"),
        *("source.ip", "destination.ip", "client.ip", "server.ip", "host.ip", "related.ip"),
    ),
    EntityKind.HOST: (
        *("agent.name", "wazuh.agent.name", "predecoder.hostname", "data.hostname"),
        *("data.win.system.computer", "data.win.eventdata.workstationName"),
        *("host.name", "host.hostname", "related.hosts"),
    ),
    EntityKind.USER: (
        *("data.srcuser", "data.dstuser", "data.user", "syscheck.uname_after"),
        *("data.win.eventdata.targetUserName", "data.win.eventdata.subjectUserName"),
        *("data.win.eventdata.user", "user.name", "user.target.name", "related.user"),
    ),
    EntityKind.FILE_HASH: (
        *("syscheck.md5_after", "syscheck.sha1_after", "syscheck.sha256_after"),
        *("data.virustotal.source.md5", "data.virustotal.source.sha1"),
        *("file.hash.md5", "file.hash.sha1", "file.hash.sha256", "process.hash.md5"),
        *("process.hash.sha1", "process.hash.sha256", "related.hash"),
    ),
    EntityKind.FILE: (
        "syscheck.path",
        "data.win.eventdata.image",
        "file.path",
        "process.executable",
    ),
    EntityKind.DOMAIN: ("data.win.eventdata.queryName", "data.dns.rrname", "dns.question.name"),
    EntityKind.URL: ("data.url", "url.full", "url.original"),
}
"""Where documents name an entity, by its kind."""


def build_severity_query(least: Severity) -> dict[str, Any]:
    """Return the clause for what is this severe, or of a level that is not known."""
    words = [word for word, severity in SEVERITY_LEVELS.items() if severity.rank < least.rank]
    lower = [
        {"range": {"rule.level": {"lt": MIN_LEVELS[least]}}},
        {"terms": {"wazuh.rule.level": words}},
    ]
    return {"bool": {"must_not": lower if words else []}}


def build_group_query(group: AlertGroup, length: timedelta) -> dict[str, Any]:
    """Return the clause for the alerts of a group."""
    return {
        "bool": {
            "filter": [
                build_time_query(TIME_FIELD, group.window(length)),
                build_any_query(RULE_FIELDS, [group.rule_id]),
                *_build_optional_query(AGENT_FIELDS, group.agent_id),
                *_build_optional_query(NAME_FIELDS, group.agent_name),
            ]
        }
    }


def build_any_query(fields: tuple[str, ...], values: list[str]) -> dict[str, Any]:
    """Return the clause for what has one of some values in one of some fields."""
    terms = [{"terms": {field: values}} for field in fields]
    return {"bool": {"should": terms, "minimum_should_match": 1}}


def _build_optional_query(fields: tuple[str, ...], value: str) -> list[dict[str, Any]]:
    """Return the clause for what has a value in one of some fields, or in none of them."""
    if value != UNKNOWN:
        return [build_any_query(fields, [value])]
    return [{"bool": {"must_not": [{"exists": {"field": field}} for field in fields]}}]
