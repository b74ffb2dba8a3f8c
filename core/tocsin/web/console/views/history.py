"""Timeline of an incident, from its occurrence to its last delivery."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from tocsin.incidents import describe_change
from tocsin.model import Severity, Statement, TimelineEntry
from tocsin.web.console.rendering import LABELS

_TOCSIN = "Tocsin"
_IMPLIED = "disposition_by"
"""The changed member that the author of the change implies."""
_NOUNS = {"acknowledged_by": "acknowledgement"}
"""Words for the members whose names are no nouns."""


def build_history(
    incident: Mapping[str, Any], alerts: Iterable[Mapping[str, Any]], trace: Mapping[str, Any]
) -> Sequence[TimelineEntry]:
    """Return the events of an incident with their sources, earliest first."""
    moments = (
        *_list_incident_changes(incident),
        *_list_alerts(incident["provider"], alerts),
        *_list_deliveries(trace["events"]),
        *_list_deliveries(trace["changes"]),
        *_list_triage(trace["triage"]),
        *_list_investigations(trace["investigations"]),
    )
    return sorted(moments, key=lambda moment: moment.at)


def _list_incident_changes(incident: Mapping[str, Any]) -> Iterator[TimelineEntry]:
    severity = Severity(incident["severity"])
    yield _build_entry(
        incident["occurred_at"], incident["provider"], "Incident occurred.", severity
    )
    yield _build_entry(incident["created_at"], _TOCSIN, "Incident synced.")
    if incident["updated_at"] != incident["created_at"]:
        yield _build_entry(incident["updated_at"], _TOCSIN, "Incident updated.")


def _list_alerts(provider: str, alerts: Iterable[Mapping[str, Any]]) -> Iterator[TimelineEntry]:
    for alert in alerts:
        text, severity = f"Alert: {alert['title']}", Severity(alert["severity"])
        yield _build_entry(alert["occurred_at"], provider, text, severity)


def _list_deliveries(events: Iterable[Mapping[str, Any]]) -> Iterator[TimelineEntry]:
    for event in events:
        yield _build_entry(event["timestamp"], _TOCSIN, _describe_event(event))
        for delivery in event["deliveries"]:
            for attempt in delivery["attempts"]:
                yield _build_entry(
                    attempt["started_at"], delivery["destination"], _describe_attempt(attempt)
                )


def _describe_event(event: Mapping[str, Any]) -> str:
    members = [
        f"{each['name']} changed from {describe_change(each)}" for each in event.get("members", ())
    ]
    changed = f": {', '.join(members)}" if members else ""
    rule = f", suppressed by {event['suppressed_by']}" if event["suppressed_by"] else ""
    return f"Event {event['event_type']} created{rule}{changed}."


def _list_triage(changes: Iterable[Mapping[str, Any]]) -> Iterator[TimelineEntry]:
    for change in changes:
        for member in change["members"]:
            if member["name"] == _IMPLIED:
                continue
            name = _NOUNS.get(member["name"], member["name"])
            what = name.replace("_", " ").capitalize()
            text = f"{what} changed from {describe_change(member)}."
            if member["name"] == "comments":  # the change has only its ID
                text = "Comment added."
            yield _build_entry(change["at"], change["by"], text)


def _describe_attempt(attempt: Mapping[str, Any]) -> str:
    status = f" ({attempt['status']})" if attempt["status"] else ""
    outcome = LABELS.get(attempt["outcome"], attempt["outcome"])
    return f"Attempt {attempt['number']}: {outcome}{status}."


def _list_investigations(investigations: Iterable[Mapping[str, Any]]) -> Iterator[TimelineEntry]:
    for session in investigations:
        who = "A schedule" if session["schedule_id"] else session["created_by"]
        text = f"{who} asked: {session['query']}"
        yield _build_entry(session["created_at"], "investigations", text)
        yield from _list_write_backs(session["write_backs"])
        yield from _list_deliveries(session["events"])
        yield from _list_deliveries(session["changes"])


def _list_write_backs(write_backs: Iterable[Mapping[str, Any]]) -> Iterator[TimelineEntry]:
    for each in write_backs:
        if each["finished_at"] is not None:
            because = f": {each['reason'].rstrip('.')}" if each["reason"] else ""
            text = f"SIEM comment: {each['state']}{because}."
            yield _build_entry(each["finished_at"], "write-back", text)


def _build_entry(
    at: str, source: str, text: str, severity: Severity | None = None
) -> TimelineEntry:
    known_from = Statement(text, (source,))
    moment = datetime.fromisoformat(at)
    return TimelineEntry(at=moment, statement=known_from, severity=severity, source=source)
