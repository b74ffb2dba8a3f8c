"""How many alerts the indexer has of each group, from when to when, and what the latest says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import timedelta
from typing import Any

from tocsin import Window
from tocsin_connectors.siem.indices.walk import build_time_query
from tocsin_connectors.siem.records import children
from tocsin_connectors.siem.wazuh.alerts import TIME_FIELD, UNKNOWN
from tocsin_connectors.siem.wazuh.groups import AlertGroup, AlertTally, from_milliseconds
from tocsin_connectors.siem.wazuh.queries import (
    AGENT_FIELDS,
    NAME_FIELDS,
    RULE_FIELDS,
    build_any_query,
)

MAX_GROUPS = 2_000
"""So many groups are told at once; of one that is not among them, no count is told."""
LAYOUTS = ("alerts", "findings")
_MILLISECOND = timedelta(milliseconds=1)
_LATEST_FIELDS = ["rule.id", "rule.description", "rule.level", "wazuh.rule"]


def build_tally_query(groups: Collection[AlertGroup], length: timedelta) -> dict[str, Any]:
    """Return the search that tells of each group how many alerts it has, from when to when."""
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
    """Return what is asked of all alerts of a group."""
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
    """Return what groups are told apart by, in one of the layouts; the rule is in each document."""
    agent = {"agent_id": AGENT_FIELDS[layout], "agent_name": NAME_FIELDS[layout]}
    optional = [
        {name: {"terms": {"field": field, "missing_bucket": True}}} for name, field in agent.items()
    ]
    return [{"rule_id": {"terms": {"field": RULE_FIELDS[layout]}}}, *optional]


def parse_tallies(aggregations: Mapping[str, Any]) -> dict[str, AlertTally | None]:
    """Return what the answer says of each group, by its name."""
    found = {}
    for layout in LAYOUTS:
        for bucket in children(dict(aggregations.get(layout) or {}), "buckets"):
            match bucket.get("key"):
                case {"begin": int(begin), "rule_id": rule, **agent}:
                    name, called = (agent.get(it) or UNKNOWN for it in ("agent_id", "agent_name"))
                    group = AlertGroup(str(rule), str(name), str(called), from_milliseconds(begin))
                    found[group.name] = AlertTally.read(bucket)
    return found


class TallyCache:
    """Counts the groups of a page at once, when the first of them is asked for."""

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
        """Return the tally of a group; None where the indexer does not tell."""
        if group not in self._groups:
            self._groups, self._counted = {group}, None
        if self._counted is None:
            self._counted = parse_tallies(
                await self._ask(build_tally_query(self._groups, self._length))
            )
        return self._counted.get(group.name)
