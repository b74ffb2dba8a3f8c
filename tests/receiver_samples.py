"""One event of each type, for pages and pictures of receivers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tocsin import Event, EventType

_TOCSIN = "https://tocsin.example.com"
_AT = datetime(2026, 11, 21, 5, 33, 1, 123000, UTC)
_INCIDENT: dict[str, Any] = {
    "number": 4711,
    "title": "Many failed sign-ins, then one that succeeded",
    "description": "47 failed sign-ins by 12 users from one address within a minute, then one that "
    "succeeded. The address had not been seen before. "
    "See https://wiki.example.com/runbooks/spraying.",
    "severity": "High",
    "status": "New",
    "provider": "cloud",
    "external_id": "b3a1",
    "external_number": "1024",
    "source_url": "https://siem.example.com/incidents/b3a1",
    "techniques": ["T1110.003", "T1078"],
    "occurred_at": "2026-11-21T05:20:00.000Z",
    "created_at": "2026-11-21T05:33:01.123Z",
    "updated_at": "2026-11-21T05:33:01.123Z",
    "url": f"{_TOCSIN}/incidents/4711",
    "entities": [
        {"kind": "ip", "value": "203.0.113.7", "role": "source"},
        {"kind": "user", "value": "j.doe", "role": "target"},
        {"kind": "user", "value": "backup@example.com", "role": "target"},
        {"kind": "host", "value": "vpn-1.example.com", "role": None},
        {"kind": "url", "value": "https://login.example.com/oauth2?client=vpn", "role": None},
    ],
}
_SCHEDULE: dict[str, Any] = {
    "id": "sch_01KAJD7Z",
    "name": "nightly-hunt",
    "query": "new external logins in the last 24 hours",
    "persona": "threat-hunter",
    "tags": ["night"],
    "next_run_at": "2026-11-22T02:00:00.000Z",
}
_RUN = {
    "session_id": "ses_01KAJD8M",
    "schedule_id": _SCHEDULE["id"],
    "schedule_name": _SCHEDULE["name"],
}


def _statement(text: str) -> dict[str, Any]:
    return {"text": text, "evidence": ["step:4"]}


def _assessed(kind: str, value: str, disposition: str) -> dict[str, Any]:
    return {"entity": {"kind": kind, "value": value}, "disposition": disposition}


_REPORT: dict[str, Any] = {
    "title": "New external logins in the last 24 hours",
    "verdict": "suspicious",
    "confidence": "medium",
    "risk_score": 71.6,
    "summary": [
        _statement("3 accounts signed in from addresses that were never seen before."),
        _statement("203.0.113.7 is in incidents 4711 and 4698 of the last week."),
        _statement("j.doe signed in from two countries within 14 minutes."),
    ],
    "entities": [
        _assessed("ip", "203.0.113.7", "malicious"),
        _assessed("user", "j.doe", "suspicious"),
        _assessed("host", "vpn-1.example.com", "unknown"),
    ],
    "gaps": [_statement("The provider edge could not be queried.")],
}


def _event(number: int, kind: EventType, data: dict[str, Any], **more: Any) -> Event:
    name = f"evt_01KAJD9V3N8Q4R5S6T7V8W9X{number}Y"
    return Event(id=name, event_type=kind, timestamp=_AT, data=data, **more)


ALERT = _event(
    0,
    EventType.INCIDENT_ALERT,
    {
        "incident_number": 4711,
        **{name: _INCIDENT[name] for name in ("title", "severity", "status", "provider", "url")},
    },
    subject="incident:4711",
    context={"incident": _INCIDENT},
)
COMPLETED = _event(
    1,
    EventType.INVESTIGATION_COMPLETED,
    {
        **_RUN,
        "title": _REPORT["title"],
        "risk_score": _REPORT["risk_score"],
        "entity_count": 14,
        "finding_count": 3,
        "url": f"{_TOCSIN}/investigations/{_RUN['session_id']}",
    },
    subject=f"session:{_RUN['session_id']}",
    context={"schedule": _SCHEDULE, "session": {"id": _RUN["session_id"]}, "report": _REPORT},
)
FAILED = _event(
    2,
    EventType.INVESTIGATION_FAILED,
    {
        **_RUN,
        "error": "every provider that the question needs is away: cloud (403 Forbidden), edge",
        "consecutive_failures": 3,
        "url": f"{_TOCSIN}/schedules/{_SCHEDULE['id']}",
    },
    subject=f"schedule:{_SCHEDULE['id']}",
    context={"schedule": _SCHEDULE, "session": {"id": _RUN["session_id"]}},
)
DISABLED = _event(
    3,
    EventType.SCHEDULE_DISABLED,
    {
        "schedule_id": _SCHEDULE["id"],
        "schedule_name": _SCHEDULE["name"],
        "reason": "consecutive_failures",
        "consecutive_failures": 5,
        "last_error": "every provider that the question needs is away: cloud (403 Forbidden), edge",
        "url": f"{_TOCSIN}/schedules/{_SCHEDULE['id']}",
    },
    subject=f"schedule:{_SCHEDULE['id']}",
    context={"schedule": _SCHEDULE},
)
SAMPLES = (ALERT, COMPLETED, FAILED, DISABLED)
