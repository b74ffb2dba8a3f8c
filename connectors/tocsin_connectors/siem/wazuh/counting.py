"""How many alerts the indexer has of each group, from when to when, and what the latest says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import timedelta
from typing import Any

from tocsin import Window
from tocsin_connectors.siem.indices.walk import within
from tocsin_connectors.siem.records import children
from tocsin_connectors.siem.wazuh.alerts import NOTHING, TIME
from tocsin_connectors.siem.wazuh.groups import Group, Tally, moment_of
from tocsin_connectors.siem.wazuh.queries import AGENT_FIELDS, NAME_FIELDS, RULE_FIELDS, either

MOST_GROUPS = 2_000
"""So many groups are told at once; of one that is not among them, no count is told."""
LAYOUTS = ("alerts", "findings")
_MILLISECOND = timedelta(milliseconds=1)
_LATEST = ["rule.id", "rule.description", "rule.level", "wazuh.rule"]


def tallies(groups: Collection[Group], length: timedelta) -> dict[str, Any]:
    """Return the search that tells of each group how many alerts it has, from when to when."""
    whole = Window(
        min(group.begin for group in groups), max(group.begin for group in groups) + length
    )
    rules = either(RULE_FIELDS, sorted({group.rule_id for group in groups}))
    agents = sorted({group.agent_id for group in groups})
    among = [] if NOTHING in agents else [either(AGENT_FIELDS, agents)]
    sources = [_by_stretch(length)]
    return {
        "size": 0,
        "query": {"bool": {"filter": [within(TIME, whole), rules, *among]}},
        "aggs": {
            layout: {
                "composite": {"size": MOST_GROUPS, "sources": [*sources, *_by(index)]},
                "aggs": summary(),
            }
            for index, layout in enumerate(LAYOUTS)
        },
    }


def summary() -> dict[str, Any]:
    """Return what is asked of all alerts of a group."""
    latest = {"size": 1, "sort": [{TIME: "desc"}], "_source": _LATEST}
    return {
        "first": {"min": {"field": TIME}},
        "last": {"max": {"field": TIME}},
        "latest": {"top_hits": latest},
    }


def _by_stretch(length: timedelta) -> dict[str, Any]:
    interval = f"{length // _MILLISECOND}ms"
    return {"begin": {"date_histogram": {"field": TIME, "fixed_interval": interval}}}


def _by(layout: int) -> list[dict[str, Any]]:
    """Return what groups are told apart by, in one of the layouts; the rule is in each document."""
    agent = {"agent_id": AGENT_FIELDS[layout], "agent_name": NAME_FIELDS[layout]}
    optional = [
        {name: {"terms": {"field": field, "missing_bucket": True}}} for name, field in agent.items()
    ]
    return [{"rule_id": {"terms": {"field": RULE_FIELDS[layout]}}}, *optional]


def tallied(aggregations: Mapping[str, Any]) -> dict[str, Tally | None]:
    """Return what the answer says of each group, by its name."""
    found = {}
    for layout in LAYOUTS:
        for bucket in children(dict(aggregations.get(layout) or {}), "buckets"):
            match bucket.get("key"):
                case {"begin": int(begin), "rule_id": rule, **agent}:
                    name, called = (agent.get(it) or NOTHING for it in ("agent_id", "agent_name"))
                    group = Group(str(rule), str(name), str(called), moment_of(begin))
                    found[group.name] = Tally.read(bucket)
    return found


class Counting:
    """Counts the groups of a page at once, when the first of them is asked for."""

    def __init__(
        self,
        ask: Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]],
        groups: Collection[Group],
        length: timedelta,
    ) -> None:
        self._ask = ask
        self._groups = set(groups)
        self._length = length
        self._counted: dict[str, Tally | None] | None = None

    async def of(self, group: Group) -> Tally | None:
        """Return the tally of a group; None where the indexer does not tell."""
        if group not in self._groups:
            self._groups, self._counted = {group}, None
        if self._counted is None:
            self._counted = tallied(await self._ask(tallies(self._groups, self._length)))
        return self._counted.get(group.name)
