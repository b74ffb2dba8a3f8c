"""What the indexer is asked, in the fields of both layouts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tocsin import EntityKind, Severity
from tocsin_connectors.siem.indices.walk import within
from tocsin_connectors.siem.wazuh.alerts import LOWEST_LEVELS, NOTHING, TIME, WORDS
from tocsin_connectors.siem.wazuh.groups import Group

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


def notable(least: Severity) -> dict[str, Any]:
    """Return the clause for what is this severe, or of a level that is not known."""
    words = [word for word, severity in WORDS.items() if severity.rank < least.rank]
    lower = [
        {"range": {"rule.level": {"lt": LOWEST_LEVELS[least]}}},
        {"terms": {"wazuh.rule.level": words}},
    ]
    return {"bool": {"must_not": lower if words else []}}


def members(group: Group, length: timedelta) -> dict[str, Any]:
    """Return the clause for the alerts of a group."""
    return {
        "bool": {
            "filter": [
                within(TIME, group.window(length)),
                either(RULE_FIELDS, [group.rule_id]),
                *_named(AGENT_FIELDS, group.agent_id),
                *_named(NAME_FIELDS, group.agent_name),
            ]
        }
    }


def either(fields: tuple[str, ...], values: list[str]) -> dict[str, Any]:
    """Return the clause for what has one of some values in one of some fields."""
    terms = [{"terms": {field: values}} for field in fields]
    return {"bool": {"should": terms, "minimum_should_match": 1}}


def _named(fields: tuple[str, ...], value: str) -> list[dict[str, Any]]:
    """Return the clause for what has a value in one of some fields, or in none of them."""
    if value != NOTHING:
        return [either(fields, [value])]
    return [{"bool": {"must_not": [{"exists": {"field": field}} for field in fields]}}]
