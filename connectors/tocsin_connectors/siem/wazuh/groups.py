"""Incidents as groups of alerts: one for each rule, agent and clock interval.

Wazuh has no incidents, but thousands of alerts. Each alert alone determines its group. The indexer
counts the alerts in a group.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote, unquote

from tocsin import Alert, Incident, Severity, Window
from tocsin_connectors.siem.records import EntityRoles, union
from tocsin_connectors.siem.wazuh.mapping import (
    WazuhDetection,
    WazuhRule,
    find_document_entities,
    find_rule_tactics,
    find_techniques,
    get_rule_id,
    parse_detection,
    parse_rule,
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class AlertGroup:
    """Alerts of one rule at one agent in one clock interval."""

    rule_id: str
    agent_id: str
    agent_name: str
    begin: datetime

    @classmethod
    def of(cls, detection: WazuhDetection, length: timedelta) -> AlertGroup:
        """Return the group of a detection. Raises ValueError for a time out of range."""
        try:
            begin = _EPOCH + (detection.at - _EPOCH) // length * length
        except OverflowError as error:
            raise ValueError(f"the time {detection.at} is out of range") from error
        return cls(detection.rule_id, detection.agent_id, detection.agent_name, begin)

    @property
    def name(self) -> str:
        """ID of the group's incident; the inverse of `parse`."""
        parts = self.rule_id, self.agent_id, self.agent_name
        return "/".join([*map(_escape_part, parts), self.begin.isoformat()])

    @classmethod
    def parse(cls, name: str) -> AlertGroup | None:
        """Return the group of an incident ID, or None if it is invalid."""
        try:
            *parts, begin = name.split("/")
            rule, agent, agent_name = map(unquote, parts)
            return cls(rule, agent, agent_name, datetime.fromisoformat(begin))
        except ValueError:
            return None

    def window(self, length: timedelta) -> Window:
        """Return the clock interval."""
        return Window(self.begin, self.begin + length)


@dataclass(frozen=True, slots=True)
class AlertTally:
    """Count, times and rule of all alerts of a group."""

    count: int
    first: datetime
    last: datetime
    rule: WazuhRule | None
    """Rule of the latest alert, if it is valid."""

    @classmethod
    def read(cls, bucket: Mapping[str, Any]) -> AlertTally | None:
        """Return the tally of an aggregation bucket, or None if it is invalid."""
        match bucket:
            case {
                "doc_count": int(count),
                "first": {"value": int() | float() as first},
                "last": {"value": int() | float() as last},
                "latest": {"hits": {"hits": [{"_source": dict(document)}, *_]}},
            }:
                rule = parse_rule(document) if get_rule_id(document) else None
                return cls(count, from_milliseconds(first), from_milliseconds(last), rule)
        return None


def _escape_part(part: str) -> str:
    """Escape the separator in a part of a name."""
    return part.replace("%", "%25").replace("/", "%2F")


def from_milliseconds(milliseconds: float) -> datetime:
    """Return the time for milliseconds since 1970."""
    return _EPOCH + round(milliseconds) * _MILLISECOND


def build_incident(hits: Iterable[dict[str, Any]], length: timedelta) -> Incident:
    """Return the incident of some alerts of one group.

    Raises ValueError if an alert has no ID, time or rule, or if there are none.
    """
    found = [(parse_detection(hit), hit["_source"]) for hit in hits]
    if not found:
        raise ValueError("no alerts")
    named = [find_document_entities(document) for _, document in found]
    roles = EntityRoles.merge(finds.roles for finds in named)
    newest = max((detection for detection, _ in found), key=lambda detection: detection.at)
    return Incident(
        external_id=AlertGroup.of(newest, length).name,
        external_number=newest.rule_id,
        title=newest.rule.title,
        **_build_severity(newest.rule),
        occurred_at=min(detection.at for detection, _ in found),
        changed_at=newest.at,
        techniques=union(find_techniques(document) for _, document in found),
        tactics=union(find_rule_tactics(document) for _, document in found),
        entities=union(finds.entities for finds in named),
        sources=roles.sources,
        targets=roles.targets,
        alerts=tuple(_build_alert(detection) for detection, _ in found),
    )


def apply_tally(incident: Incident, group: AlertGroup, tally: AlertTally | None) -> Incident:
    """Apply the tally of the whole group to the incident, if it is known."""
    if tally is None:
        return incident
    columns = {"title": tally.rule.title, **_build_severity(tally.rule)} if tally.rule else {}
    return replace(
        incident,
        **columns,
        description=_describe(group, tally),
        occurred_at=tally.first,
        changed_at=tally.last,
    )


def _build_severity(rule: WazuhRule) -> dict[str, Any]:
    return {
        "severity": rule.severity or Severity.MEDIUM,
        "raw_severity": rule.level,
        "severity_assumed": rule.severity is None,
    }


def _build_alert(detection: WazuhDetection) -> Alert:
    rule = detection.rule
    return Alert(
        external_id=detection.document_id,
        title=rule.title,
        severity=rule.severity or Severity.MEDIUM,
        occurred_at=detection.at,
        rule=detection.rule_id,  # in both versions, the title may hold values of the event
        flow=detection.flow,
        record=detection.record,
    )


def _describe(group: AlertGroup, tally: AlertTally) -> str:
    """Describe the group: `Rule 5710 fired 37 times on web-1 (001), from ...`."""
    times = "once" if tally.count == 1 else f"{tally.count:,} times"
    stretch = f"from {tally.first:%Y-%m-%d %H:%M:%S} to {tally.last:%H:%M:%S} UTC"
    when = f"at {tally.first:%Y-%m-%d %H:%M:%S} UTC" if tally.count == 1 else stretch
    where = f"on {group.agent_name} ({group.agent_id})"
    return f"Rule {group.rule_id} fired {times} {where}, {when}."


def build_dashboard_url(dashboard: str, group: AlertGroup, length: timedelta) -> str:
    """Return the URL of Discover with the alerts of a group.

    The query is KQL within Rison (https://github.com/Nanonid/rison), quoted for both.
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
