"""Where the Wazuh dashboard shows the alerts of a group."""

from __future__ import annotations

from datetime import datetime, timedelta
from urllib.parse import quote

from tocsin_connectors.siem.wazuh.groups import AlertGroup


def build_dashboard_url(dashboard: str, group: AlertGroup, length: timedelta) -> str:
    """Return the address of Discover with the alerts of a group.

    What is asked for stands there as KQL within Rison (https://github.com/Nanonid/rison): quoted in
    the one, and then in the other.
    """
    window = group.window(length)
    by_rule = _build_condition("rule.id", group.rule_id)
    asked = f"{by_rule} and {_build_condition('agent.id', group.agent_id)}"
    start, end = (_quote_rison(_format_time(moment)) for moment in (window.start, window.end))
    time = f"(time:(from:{start},to:{end}))"
    query = f"(query:(language:kuery,query:{_quote_rison(asked)}))"
    return f"{dashboard}/app/discover#/?_g={quote(time)}&_a={quote(query)}"


def _build_condition(field: str, value: str) -> str:
    quoted = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'({field}:"{quoted}" or wazuh.{field}:"{quoted}")'


def _quote_rison(text: str) -> str:
    return "'" + text.replace("!", "!!").replace("'", "!'") + "'"


def _format_time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.000Z")
