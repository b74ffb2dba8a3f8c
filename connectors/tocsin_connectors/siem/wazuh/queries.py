"""Queries to the Wazuh indexer in the fields of both layouts, and counts of alert groups."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import timedelta
from typing import Any

from tocsin import EntityKind, Severity, Window
from tocsin_connectors.siem.indices.client import build_time_query
from tocsin_connectors.siem.records import children
from tocsin_connectors.siem.wazuh.groups import AlertGroup, AlertTally, from_milliseconds
from tocsin_connectors.siem.wazuh.mapping import MIN_LEVELS, SEVERITY_LEVELS, TIME_FIELD, UNKNOWN

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
"""Fields that hold entities, by kind."""


def build_severity_query(least: Severity) -> dict[str, Any]:
    """Return the query for alerts of at least this severity, or of an unknown level."""
    levels = [word for word, severity in SEVERITY_LEVELS.items() if severity.rank < least.rank]
    lower = [
        {"range": {"rule.level": {"lt": MIN_LEVELS[least]}}},
        {"terms": {"wazuh.rule.level": levels}},
    ]
    return {"bool": {"must_not": lower if levels else []}}


def build_group_query(group: AlertGroup, length: timedelta) -> dict[str, Any]:
    """Return the query for the alerts of a group."""
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
    """Return the query for documents with one of several values in one of several fields."""
    terms = [{"terms": {field: values}} for field in fields]
    return {"bool": {"should": terms, "minimum_should_match": 1}}


def _build_optional_query(fields: tuple[str, ...], value: str) -> list[dict[str, Any]]:
    """Return the query for documents with a value in one of several fields, or in none."""
    if value != UNKNOWN:
        return [build_any_query(fields, [value])]
    return [{"bool": {"must_not": [{"exists": {"field": field}} for field in fields]}}]


MAX_GROUPS = 2_000
"""Maximum number of groups per aggregation; others have no tally."""
LAYOUTS = ("alerts", "findings")
_MILLISECOND = timedelta(milliseconds=1)
_LATEST_FIELDS = ["rule.id", "rule.description", "rule.level", "wazuh.rule"]


def build_tally_query(groups: Collection[AlertGroup], length: timedelta) -> dict[str, Any]:
    """Return the search that counts the alerts of groups, with first and last times."""
    whole = Window(
        min(group.begin for group in groups), max(group.begin for group in groups) + length
    )
    rules = build_any_query(RULE_FIELDS, sorted({group.rule_id for group in groups}))
    agents = sorted({group.agent_id for group in groups})
    among = [] if UNKNOWN in agents else [build_any_query(AGENT_FIELDS, agents)]
    sources = [_group_by_interval(length)]
    return {
        "size": 0,
        "query": {"bool": {"filter": [build_time_query(TIME_FIELD, whole), rules, *among]}},
        "aggs": {
            layout: {
                "composite": {"size": MAX_GROUPS, "sources": [*sources, *_group_by_layout(index)]},
                "aggs": build_summary_aggregations(),
            }
            for index, layout in enumerate(LAYOUTS)
        },
    }


def build_summary_aggregations() -> dict[str, Any]:
    """Return the aggregations over all alerts of a group."""
    latest = {"size": 1, "sort": [{TIME_FIELD: "desc"}], "_source": _LATEST_FIELDS}
    return {
        "first": {"min": {"field": TIME_FIELD}},
        "last": {"max": {"field": TIME_FIELD}},
        "latest": {"top_hits": latest},
    }


def _group_by_interval(length: timedelta) -> dict[str, Any]:
    interval = f"{length // _MILLISECOND}ms"
    return {"begin": {"date_histogram": {"field": TIME_FIELD, "fixed_interval": interval}}}


def _group_by_layout(layout: int) -> list[dict[str, Any]]:
    """Return the aggregation sources of one layout; the rule is in each document."""
    agent = {"agent_id": AGENT_FIELDS[layout], "agent_name": NAME_FIELDS[layout]}
    optional = [
        {name: {"terms": {"field": field, "missing_bucket": True}}} for name, field in agent.items()
    ]
    return [{"rule_id": {"terms": {"field": RULE_FIELDS[layout]}}}, *optional]


def parse_tallies(aggregations: Mapping[str, Any]) -> dict[str, AlertTally | None]:
    """Return the tallies in a response, by group name."""
    found = {}
    for layout in LAYOUTS:
        for bucket in children(dict(aggregations.get(layout) or {}), "buckets"):
            match bucket.get("key"):
                case {"begin": int(begin), "rule_id": rule, **agent}:
                    name, called = (
                        agent.get(item) or UNKNOWN for item in ("agent_id", "agent_name")
                    )
                    group = AlertGroup(str(rule), str(name), str(called), from_milliseconds(begin))
                    found[group.name] = AlertTally.read(bucket)
    return found


class TallyCache:
    """Counts of the groups of a page, requested together with the first one."""

    def __init__(
        self,
        ask: Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]],
        groups: Collection[AlertGroup],
        length: timedelta,
    ) -> None:
        self._ask = ask
        self._groups = set(groups)
        self._length = length
        self._counted: dict[str, AlertTally | None] | None = None

    async def of(self, group: AlertGroup) -> AlertTally | None:
        """Return the tally of a group, or None if the indexer has none."""
        if group not in self._groups:
            self._groups, self._counted = {group}, None
        if self._counted is None:
            self._counted = parse_tallies(
                await self._ask(build_tally_query(self._groups, self._length))
            )
        return self._counted.get(group.name)
