"""Where the Wazuh dashboard shows the alerts of a group."""

from __future__ import annotations

from datetime import datetime, timedelta
from urllib.parse import quote

from tocsin_connectors.siem.wazuh.groups import Group


def link_to(dashboard: str, group: Group, length: timedelta) -> str:
    """Return the address of Discover with the alerts of a group.

    What is asked for stands there as KQL within Rison (https://github.com/Nanonid/rison): quoted in
    the one, and then in the other.
    """
    window = group.window(length)
    asked = f"{_named('rule.id', group.rule_id)} and {_named('agent.id', group.agent_id)}"
    time = f"(time:(from:{_rison(_iso(window.start))},to:{_rison(_iso(window.end))}))"
    query = f"(query:(language:kuery,query:{_rison(asked)}))"
    return f"{dashboard}/app/discover#/?_g={quote(time)}&_a={quote(query)}"


def _named(field: str, value: str) -> str:
    quoted = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'({field}:"{quoted}" or wazuh.{field}:"{quoted}")'


def _rison(text: str) -> str:
    return "'" + text.replace("!", "!!").replace("'", "!'") + "'"


def _iso(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.000Z")
