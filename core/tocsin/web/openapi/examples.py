"""An example of everything that is sent and answered."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel

from tocsin.accounting import EVENT_OUTCOMES
from tocsin.events import payloads
from tocsin.model import Json
from tocsin.web.openapi.schemas import OpenApiDocument
from tocsin.web.routes import (
    accounting,
    api_clients,
    api_keys,
    audit,
    backfills,
    channels,
    deliveries,
    destinations,
    enrichment,
    graph,
    incidents,
    investigations,
    oauth,
    plugins,
    providers,
    push,
    replays,
    schedules,
    search,
    service,
    sessions,
)

KEY_ID = "0a1B2c3D4e5F6g7H"
CLIENT_ID = "cl_0a1B2c3D4e5F6g7H"
DELIVERY_ID = "dlv_01KAJD9V3P0Q2R4S6T8V0W2X4Y"
REPLAY_ID = "rpl_01KAJD9V3R1S3T5V7W9X1Y3Z5A"
BACKFILL_ID = "bkf_01KAJD9V3R1S3T5V7W9X1Y3Z5A"
SESSION_ID = "ses_01KAJE0M5Y7R3S9T2V4W6X8Z1A"
SCHEDULE_ID = "sch_01KAH4Q7ZB2N8D5M3X9R6T1V0W"
PROVIDER = "our-scripts"

_URL = "https://tocsin.example.com"
_ULID = "01KAJD9V3N8Q4R5S6T7V8W9X0Y"
_CREATED = "2026-11-21T05:33:01.123Z"
_USED = "2026-11-21T06:10:00.000Z"
_EXPIRES = "2027-11-21T05:33:01.123Z"
# Real secrets' checksums would not fit these
_KEY = f"sk_live_{KEY_ID}_{'x' * 49}"
_SECRET = f"cs_live_{'x' * 49}"
_TOKEN = "eyJhbGciOiJFUzI1NiIsInR5cCI6ImF0K2p3dCJ9.e30.c2lnbmF0dXJl"  # noqa: S105 - of nothing
_SCOPES: list[Json] = ["incidents:read", "search:read"]

_key: dict[str, Json] = {
    "id": _ULID,
    "key_id": KEY_ID,
    "key_prefix": f"sk_live_{KEY_ID}",
    "name": "playbooks",
    "description": "Reads incidents for the night shift's playbooks.",
    "status": "active",
    "scopes": _SCOPES,
    "created_by": "ana",
    "created_at": _CREATED,
    "updated_at": _CREATED,
    "expires_at": _EXPIRES,
    "last_used_at": _USED,
    "last_rotated_at": None,
    "previous_key_expires_at": None,
}
_client: dict[str, Json] = {
    "id": _ULID,
    "client_id": CLIENT_ID,
    "name": "soar",
    "description": "The SOAR platform.",
    "status": "active",
    "scopes": _SCOPES,
    "created_by": "ana",
    "created_at": _CREATED,
    "last_used_at": _USED,
}
_incident: dict[str, Json] = {
    "number": 4711,
    "provider": "cloud",
    "external_id": "5c1e9a52-7d0b-4f8e-9f4b-0f6a3a1c2d3e",
    "external_number": "1042",
    "title": "Many failed sign-ins, then one that succeeded",
    "description": "38 failures from 203.0.113.7 within ten minutes, then a success.",
    "severity": "High",
    "raw_severity": "high",
    "severity_assumed": False,
    "status": "New",
    "raw_status": "New",
    "merged_into": None,
    "occurred_at": "2026-11-21T05:20:00.000Z",
    "created_at": _CREATED,
    "updated_at": _CREATED,
    "url": f"{_URL}/incidents/4711",
    "source_url": "https://siem.example.com/incidents/1042",
    "alert_count": 2,
    "entities": [{"kind": "ip", "value": "203.0.113.7"}, {"kind": "user", "value": "ana"}],
    "techniques": ["T1110.003"],
}
_destination: dict[str, Json] = {
    "name": "soar",
    "plugin": "webhook",
    "managed_by": "api",
    "state": "active",
    "reason": None,
    "detail": None,
    "settings": {"url": "https://soar.example.com/hooks/tocsin", "events": ["incident-alert"]},
    "secrets": ["secret"],
    "failures": 0,
    "failing_since": None,
    "held_until": None,
    "created_by": "ana",
    "created_at": _CREATED,
    "updated_at": _CREATED,
    "revision": 1,
}
_ALERTED = ("title", "severity", "status", "provider", "url")
_plugin: dict[str, Json] = {
    "name": "webhook",
    "distribution": "tocsin",
    "version": "0.1.0",
    "state": "loaded",
    "absent": None,
    "offers": ["destinations"],
    "used_by": [{"table": "destinations.soar", "absent": None}],
}
_entry: dict[str, Json] = {
    "id": 17,
    "at": _CREATED,
    "actor": "admin:ana",
    "action": "api-key.create",
    "target": f"key:{KEY_ID}",
    "address": "198.51.100.4",
    "request_id": "01KAJD9V3M1C8ZP0Q5T9W7XJ2B",
    "count": 1,
    "details": {"name": "playbooks", "scopes": _SCOPES, "expires_at": _EXPIRES},
    "position": 17,
    "seal": "b3f1c2a4d5e6978812345678abcdef0012345678abcdef0012345678abcdef00",
}
_extent: dict[str, Json] = {
    "provider": "edge",
    "stream": "changed",
    "source": "/var/log/suricata/eve.json",
    "from": 0,
    "to": 81920,
}
_whereabouts: dict[str, Json] = {
    "id": "dlv_01KAJD9V3P0Q2R4S6T8V0W2X4Y",
    "destination": "soar",
    "state": "pending",
    "reason": "503: busy",
    "due_at": "2026-11-21T06:10:00.000Z",
    "remote_id": None,
    "remote_url": None,
    "finished_at": None,
}
_delivery: dict[str, Json] = {
    **_whereabouts,
    "event_id": f"evt_{_ULID}",
    "event_type": "incident-alert",
    "subject": "incident:4711",
    "timestamp": _CREATED,
    "created_at": _CREATED,
}
_replay: dict[str, Json] = {
    "id": REPLAY_ID,
    "state": "running",
    "filter": {
        "state": "dead",
        "destination": "soar",
        "event_type": None,
        "since": "2026-11-20T22:00:00.000Z",
        "until": None,
    },
    "total": 1250,
    "replayed": 500,
    "created_by": "ana",
    "created_at": _USED,
    "updated_at": _USED,
    "finished_at": None,
}
_backfill: dict[str, Json] = {
    "id": BACKFILL_ID,
    "provider": "edge",
    "origin": "operator",
    "alert": False,
    "state": "running",
    "pages": 12,
    "records": 1180,
    "new": 37,
    "changed": 4,
    "rejected": 0,
    "from": "2026-11-01T00:00:00.000Z",
    "to": "2026-11-08T00:00:00.000Z",
    "progress": 0.25,
    "reason": None,
    "created_by": "ana",
    "created_at": _USED,
    "updated_at": _USED,
    "finished_at": None,
    "reached": "2026-11-02T18:00:00.000Z",
}
_session: dict[str, Json] = {
    "id": SESSION_ID,
    "status": "completed",
    "query": "Is 203.0.113.7 still at it? #4711",
    "persona": "analyst",
    "provider": None,
    "schedule_id": None,
    "run": 1,
    "progress": {"phase": "report", "steps": 31, "asked": 22},
    "error": None,
    "title": "Brute force from 203.0.113.7 against web01",
    "verdict": "malicious",
    "confidence": "high",
    "risk_score": 78.0,
    "entity_count": 9,
    "finding_count": 3,
    "created_by": "playbooks",
    "created_at": _CREATED,
    "updated_at": _USED,
    "completed_at": _USED,
    "url": f"{_URL}/investigations/{SESSION_ID}",
}
_OF_TRACE = (
    *("id", "schedule_id", "query", "status", "title", "verdict", "risk_score", "error"),
    *("created_by", "created_at", "completed_at"),
)
_whole_session: dict[str, Json] = {
    **_session,
    "messages": [
        {
            "role": "user",
            "text": "Is 203.0.113.7 still at it? #4711",
            "run": 1,
            "created_by": "playbooks",
            "created_at": _CREATED,
        }
    ],
    "report": "# Brute force from 203.0.113.7 against web01\n\n...",
    "write_backs": [
        {
            "incident_number": 4711,
            "provider": "cloud",
            "run": 1,
            "state": "written",
            "attempts": 0,
            "reason": None,
            "finished_at": _USED,
        }
    ],
}
_started: dict[str, Json] = {
    "session_id": SESSION_ID,
    "status": "queued",
    "url": f"{_URL}/investigations/{SESSION_ID}",
}
_address: dict[str, Json] = {"kind": "ip", "value": "203.0.113.7"}
_statement: dict[str, Json] = {
    "text": "203.0.113.7 is in 4 incidents of the last week.",
    "evidence": ["step:7"],
}
_finding: dict[str, Json] = {
    "id": "F1",
    "kind": "shared-entity",
    "title": "4 incidents share 203.0.113.7",
    "severity": "High",
    "statements": [_statement],
    "entities": [_address],
    "incidents": [4711, 4702],
    "techniques": ["T1110"],
}
_assessed: dict[str, Json] = {
    "entity": _address,
    "disposition": "malicious",
    "internal": False,
    "well_known": False,
    "depth": 0,
    "incident_count": 4,
    "first_seen": _CREATED,
    "last_seen": _USED,
    "statements": [_statement],
}
_moment: dict[str, Json] = {
    "at": _CREATED,
    "statement": _statement,
    "severity": "High",
    "source": "provider:edge",
}
_step: dict[str, Json] = {
    "number": 7,
    "run": 1,
    "phase": "gather",
    "kind": "SightingsOf",
    "asked_of": "graph",
    "question": {"entities": [_address]},
    "outcome": "answered",
    "reason": None,
    "conclusion": None,
    "evidence": None,
    "started_at": _CREATED,
    "duration_ms": 2,
}
_node: dict[str, Json] = {"kind": "incident", "value": "4711"}
_edge: dict[str, Json] = {
    "source": _node,
    "type": "involves",
    "target": _address,
    "first_seen": _CREATED,
    "last_seen": _CREATED,
    "count": 1,
    "known_from": ["incident:4711"],
}
_part: dict[str, Json] = {"nodes": [_address, _node], "edges": [_edge], "complete": True}
_no_outcomes: dict[str, Json] = dict.fromkeys(EVENT_OUTCOMES, 0)
_methods: list[Json] = ["client_secret_basic", "client_secret_post"]
_recurring: dict[str, Json] = {
    "name": "nightly-hunt",
    "query": "Sign-ins from new countries in the last 24 hours",
    "persona": "threat-hunter",
    "cron": "0 2 * * *",
    "timezone": "Europe/Berlin",
    "jitter": "PT5M",
    "tags": ["night", "sign-ins"],
}
_schedule: dict[str, Json] = {
    **_recurring,
    "id": SCHEDULE_ID,
    "managed_by": "api",
    "provider": None,
    "interval": None,
    "starts_at": None,
    "ends_at": None,
    "timeout": "PT10M",
    "misfire_grace": "PT1H",
    "overlap": "skip",
    "failure_limit": None,
    "status": "active",
    "disabled_reason": None,
    "consecutive_failures": 0,
    "last_status": "completed",
    "last_error": None,
    "last_run_at": "2026-11-21T01:02:17.481Z",
    "next_run_at": "2026-11-22T01:03:44.902Z",
    "revision": 1,
    "created_by": "ana",
    "created_at": _CREATED,
    "updated_at": _CREATED,
    "url": f"{_URL}/schedules/{SCHEDULE_ID}",
}
_upcoming: list[Json] = [
    _schedule["next_run_at"],
    "2026-11-23T01:00:52.317Z",
    "2026-11-24T01:04:08.660Z",
]
_fired: dict[str, Json] = {
    "id": "run_01KAJE0M5X6Q2R8S1T3V5W7Y9Z",
    "schedule_id": SCHEDULE_ID,
    "trigger": "clock",
    "state": "completed",
    "count": 1,
    "session_id": SESSION_ID,
    "cause": None,
    "reason": None,
    "fire_at": "2026-11-21T01:00:00.000Z",
    "due_at": "2026-11-21T01:02:17.463Z",
    "until": None,
    "started_at": "2026-11-21T01:02:17.481Z",
    "ended_at": "2026-11-21T01:02:49.120Z",
    "duration_ms": 31_639,
    "created_by": "schedules",
}
_run: dict[str, Json] = {
    "session_id": SESSION_ID,
    "schedule_id": SCHEDULE_ID,
    "schedule_name": "nightly-hunt",
}


def _event(kind: str, data: dict[str, Json]) -> dict[str, Json]:
    return {"event_type": kind, "timestamp": _CREATED, "data": data}


EXAMPLES: Mapping[type[BaseModel], Json] = {
    api_keys.NewApiKey: {
        "name": "playbooks",
        "scopes": _SCOPES,
        "description": "Reads incidents for the night shift's playbooks.",
        "expires_in_days": 365,
    },
    api_keys.CreatedApiKey: {
        **{name: _key[name] for name in ("id", "key_id", "name", "scopes", "expires_at")},
        "api_key": _KEY,
        "header_name": "X-API-Key",
    },
    api_keys.ApiKeyItem: _key,
    api_keys.ApiKeyList: {"api_keys": [_key], "total": 1, "next_cursor": None},
    api_keys.Rotation: {"grace_period_days": 7},
    api_keys.RotatedApiKey: {
        "key_id": KEY_ID,
        "api_key": _KEY,
        "expires_at": _EXPIRES,
        "previous_key_expires_at": "2026-11-28T05:33:01.123Z",
    },
    api_clients.NewApiClient: {
        "name": "soar",
        "scopes": _SCOPES,
        "description": "The SOAR platform.",
    },
    api_clients.CreatedApiClient: {
        **{name: _client[name] for name in ("id", "client_id", "name", "scopes")},
        "client_secret": _SECRET,
        "token_endpoint": _URL + oauth.TOKEN_PATH,
    },
    api_clients.ApiClientItem: _client,
    api_clients.ApiClientList: {"clients": [_client], "total": 1, "next_cursor": None},
    api_clients.RegeneratedSecret: {"client_id": CLIENT_ID, "client_secret": _SECRET},
    destinations.NewDestination: {
        "name": "soar",
        "plugin": "webhook",
        "settings": {
            "url": "https://soar.example.com/hooks/tocsin",
            "events": ["incident-alert"],
            "secret": "whsec_" + "QUJD" * 10,
        },
    },
    destinations.DestinationChange: {"settings": {"min_severity": "High", "events": None}},
    destinations.DestinationItem: _destination,
    destinations.DestinationDetail: _destination | {"waiting": 0, "dead": 0},
    destinations.DestinationList: {
        "destinations": [_destination],
        "total": 1,
        "next_cursor": None,
    },
    destinations.SampleRequest: {"event_type": "incident-alert"},
    destinations.SampleOutcome: {
        "event_id": "evt_01KAJD9V3N8Q4R5S6T7V8W9X0Y",
        "outcome": "delivered",
        "status": 200,
        "duration_ms": 83,
        "reason": None,
        "response": "ok",
        "remote_id": None,
        "remote_url": None,
    },
    channels.ChannelList: {
        "channels": [
            {
                "plugin": "webhook",
                "summary": "Posts each event, signed, and takes any 2xx answer for a receipt.",
                "settings": [
                    {
                        "name": "url",
                        "type": "text",
                        "shape": "text",
                        "choices": [],
                        "required": False,
                        "default": None,
                        "secret": False,
                        "local": False,
                        "common": False,
                        "description": "Where to post to.",
                    }
                ],
            }
        ],
        "total": 1,
    },
    deliveries.DeliveryList: {
        "deliveries": [_delivery | {"attempts": 1}],
        "total": 1,
        "total_relation": "eq",
        "next_cursor": None,
    },
    deliveries.DeliveryDetail: {
        **_delivery,
        "event": {
            "event_type": "incident-alert",
            "timestamp": _CREATED,
            "data": {"incident_number": 4711, **{name: _incident[name] for name in _ALERTED}},
        },
        "attempts": [
            {
                "number": 1,
                "started_at": _CREATED,
                "duration_ms": 38,
                "outcome": "later",
                "status": 503,
                "reason": "503: busy",
                "response": "busy",
            }
        ],
    },
    deliveries.DeliveryBody: {
        "id": DELIVERY_ID,
        "destination": "soar",
        "template": "envelope",
        "parts": [
            {
                "name": "body",
                "content": '{"event_type":"incident-alert","data":{"incident_number":4711}}',
                "reason": None,
            }
        ],
        "breaches": [],
        "reason": None,
    },
    replays.NewReplay: {
        "state": "dead",
        "destination": "soar",
        "since": "2026-11-20T22:00:00Z",
    },
    replays.Replay: _replay,
    replays.ReplayList: {"replays": [_replay], "total": 1, "next_cursor": None},
    backfills.NewBackfill: {
        "provider": "edge",
        "from": "2026-11-01T00:00:00Z",
        "to": "2026-11-08T00:00:00Z",
    },
    backfills.BackfillItem: _backfill,
    backfills.BackfillList: {"backfills": [_backfill], "total": 1, "next_cursor": None},
    schedules.NewSchedule: _recurring,
    schedules.ScheduleChange: {"interval": "PT15M", "jitter": None},
    schedules.ScheduleItem: _schedule,
    schedules.ScheduleDetail: _schedule | {"upcoming": _upcoming},
    schedules.ScheduleList: {"schedules": [_schedule], "total": 1, "next_cursor": None},
    schedules.ScheduleRun: _fired,
    schedules.RunList: {
        "runs": [_fired],
        "total": 1,
        "total_relation": "eq",
        "next_cursor": None,
    },
    schedules.UpcomingList: {
        "upcoming": [
            {
                "due_at": _schedule["next_run_at"],
                "schedule_id": SCHEDULE_ID,
                "schedule_name": _schedule["name"],
            }
        ],
        "until": "2026-11-22T05:33:01.123Z",
        "truncated": False,
    },
    sessions.NewInvestigation: {"query": "Is 203.0.113.7 still at it? #4711"},
    sessions.NewMessage: {"message": "And what of the whole network over the last month?"},
    sessions.StartedSession: _started,
    sessions.SessionSummary: _session,
    sessions.Session: _whole_session,
    investigations.InvestigationList: {
        "investigations": [_session],
        "total": 1,
        "total_relation": "eq",
        "next_cursor": None,
    },
    investigations.InvestigationReport: {
        "title": _session["title"],
        "verdict": "malicious",
        "confidence": "high",
        "risk_score": 78.0,
        "summary": [_statement],
        "findings": [_finding],
        "entities": [_assessed],
    },
    investigations.InvestigationFindings: {"findings": [_finding], "total": 1},
    investigations.InvestigationEntities: {"entities": [_assessed], "total": 1},
    investigations.InvestigationTimeline: {"timeline": [_moment], "total": 1},
    investigations.SessionSteps: {"steps": [_step], "total": 31, "next_cursor": None},
    investigations.SessionStepDetail: {
        **_step,
        "answer": [{"entity": _address, "incident_count": 4}],
    },
    enrichment.IncidentEnrichment: {
        "incident_number": 4711,
        "changed": 1,
        "enrichments": [
            {
                "entity": _address,
                "enricher": "history",
                "difference": "new",
                "enrichment": {
                    "summary": "It is in 4 incidents.",
                    "disposition": "suspicious",
                    "score": None,
                    "tags": [],
                    "techniques": [],
                    "facts": {"incident_count": 4},
                    "link": None,
                },
            }
        ],
        "skipped": [
            {
                "entity": {"kind": "ip", "value": "10.20.0.4"},
                "enricher": "abuseipdb",
                "outcome": "refused",
                "reason": "it is internal, and nothing internal leaves",
            }
        ],
        "failed": [],
        "passed_over": 0,
    },
    search.SearchResults: {
        "results": [
            {
                "kind": "incident",
                "id": "4711",
                "title": "Brute force against web01",
                "snippet": "37 failures from <mark>203.0.113.7</mark> within a minute",
                "score": 0.82,
                "at": _CREATED,
                "url": f"{_URL}/incidents/4711",
            }
        ],
        "total": 1,
        "total_relation": "eq",
        "next_cursor": None,
    },
    search.EntitySearchResults: {
        "entities": [{**_address, "incident_count": 4, "first_seen": _CREATED, "last_seen": _USED}],
        "total": 1,
        "total_relation": "eq",
        "next_cursor": None,
    },
    graph.GraphNeighborhood: {"entity": _address, **_part},
    graph.GraphPath: _part,
    graph.StixBundle: {
        "type": "bundle",
        "id": "bundle--5f2a1c44-0a6d-5f0e-9d0c-3f6b8d1e7a20",
        "objects": [
            {
                "type": "ipv4-addr",
                "spec_version": "2.1",
                "id": "ipv4-addr--9ddd739e-87b1-587d-83f2-62ef1130af2f",
                "value": "203.0.113.7",
            }
        ],
    },
    graph.GraphStatistics: {
        "nodes": [{"name": "incident", "count": 48_213, "relation": "eq"}],
        "edges": [{"name": "involves", "count": 1_000, "relation": "gte"}],
    },
    providers.ProviderList: {
        "providers": [
            {
                "name": "edge",
                "plugin": "crowdsec",
                "state": "healthy",
                "outcome": "read",
                "reason": None,
                "failures": 0,
                "read_at": _USED,
                "succeeded_at": _USED,
                "failing_since": None,
                "next_read_at": _USED,
                "clock_skew_seconds": 0.4,
                "node": "8173530148173502",
                "capabilities": ["backfill", "reread"],
                "streams": [{"name": "alerts", "read_at": _USED, "covered_until": _CREATED}],
            }
        ],
        "total": 1,
    },
    plugins.PluginList: {"plugins": [_plugin], "total": 1},
    plugins.PluginDetail: {
        **_plugin,
        "hooks": ["tocsin_channels"],
        "kinds": [
            {
                "section": "destinations",
                "name": "Webhook",
                "summary": "Posts each event, signed, and takes any 2xx answer for a receipt.",
                "capabilities": [],
                "streams": [],
                "permissions": [],
                "settings": [
                    {
                        "name": "url",
                        "type": "text",
                        "required": False,
                        "default": None,
                        "secret": False,
                        "common": False,
                        "description": "Where to post to.",
                    }
                ],
            }
        ],
    },
    audit.AuditList: {
        "entries": [_entry],
        "total": 1,
        "total_relation": "eq",
        "next_cursor": None,
    },
    accounting.Trace: {
        "incident": {
            name: _incident[name]
            for name in ("number", "provider", "external_id", "title", "severity", "created_at")
        },
        "coverage": {
            **_extent,
            "outcome": "read",
            "reason": None,
            "started_at": _CREATED,
            "finished_at": _USED,
        },
        "alert": {
            "outcome": "alerted",
            "detail": "an event was written for whoever wants to hear of it",
        },
        "events": [
            {
                "id": f"evt_{_ULID}",
                "event_type": "incident-alert",
                "timestamp": _CREATED,
                "outcome": "on-its-way",
                "deliveries": [
                    {
                        **_whereabouts,
                        "attempts": [
                            {
                                "number": 1,
                                "started_at": _CREATED,
                                "duration_ms": 38,
                                "outcome": "later",
                                "status": 503,
                                "reason": "503: busy",
                            }
                        ],
                    }
                ],
            }
        ],
        "investigations": [
            {
                **{name: _session[name] for name in _OF_TRACE},
                "events": [],
                "write_backs": [
                    {
                        "run": 1,
                        "state": "written",
                        "attempts": 0,
                        "reason": None,
                        "created_at": _USED,
                        "finished_at": _USED,
                    }
                ],
            }
        ],
    },
    accounting.Proof: {
        "since": "2026-11-20T06:10:00.000Z",
        "until": _USED,
        "coverage": [
            {
                **_extent,
                "stretches": 24,
                "records": 310,
                "new": 1,
                "changed": 0,
                "rejected": 0,
                "read_at": _USED,
            }
        ],
        "holes": [],
        "lost": [],
        "passed_over": [],
        "failures": [],
        "silent": [],
        "quarantined": 0,
        "incidents": {"alerted": 1, "below-threshold": 0, "quiet": 0, "rose-unalerted": 0},
        "events": _no_outcomes | {"on-its-way": 1},
        "destinations": [
            {"destination": "soar", "delivered": 0, "pending": 1, "on_hold": 0, "dead": 0}
        ],
        "not_arrived": [
            {
                **_whereabouts,
                "event_id": f"evt_{_ULID}",
                "event_type": "incident-alert",
                "subject": "incident:4711",
                "timestamp": _CREATED,
                "attempts": 1,
            }
        ],
        "not_arrived_total": 1,
        "unaccounted": [],
    },
    push.PushBody: {
        "external_id": "case-17",
        "title": "Many failed sign-ins, then one that succeeded",
        "severity": "High",
        "occurred_at": _CREATED,
        "entities": [{"kind": "ip", "value": "203.0.113.7"}],
    },
    push.PushResult: {"provider": PROVIDER, "received": 1, "new": 1, "changed": 0, "rejected": 0},
    oauth.TokenRequest: {
        "grant_type": oauth.GRANT,
        "client_id": CLIENT_ID,
        "client_secret": _SECRET,
        "scope": "incidents:read",
    },
    oauth.TokenResponse: {
        "access_token": _TOKEN,
        "expires_in": 1800,
        "token_type": "Bearer",
        "scope": "incidents:read",
    },
    oauth.PresentedToken: {
        "client_id": CLIENT_ID,
        "client_secret": _SECRET,
        "token": _TOKEN,
    },
    oauth.Introspection: {
        "active": True,
        "scope": "incidents:read",
        "client_id": CLIENT_ID,
        "token_type": "Bearer",
        "exp": 1795240981,
        "iat": 1795239181,
        "sub": CLIENT_ID,
        "aud": _URL,
        "iss": _URL,
        "jti": _ULID,
    },
    oauth.RevokedToken: {},
    oauth.PublicKeySet: {
        "keys": [
            {
                "kty": "EC",
                "crv": "P-256",
                "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
                "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
                "kid": _ULID,
                "use": "sig",
                "alg": "ES256",
            }
        ]
    },
    oauth.AuthorizationServerMetadata: {
        "issuer": _URL,
        "token_endpoint": _URL + oauth.TOKEN_PATH,
        "jwks_uri": _URL + oauth.JWKS_PATH,
        "introspection_endpoint": _URL + oauth.INTROSPECTION_PATH,
        "revocation_endpoint": _URL + oauth.REVOCATION_PATH,
        "scopes_supported": _SCOPES,
        "response_types_supported": [],
        "grant_types_supported": [oauth.GRANT],
        "token_endpoint_auth_methods_supported": _methods,
        "introspection_endpoint_auth_methods_supported": _methods,
        "revocation_endpoint_auth_methods_supported": _methods,
        "service_documentation": f"{_URL}/docs",
    },
    incidents.IncidentItem: _incident,
    incidents.IncidentList: {
        "incidents": [_incident],
        "total": 1,
        "total_relation": "eq",
        "next_cursor": None,
        "resume_cursor": "YTU2",
    },
    service.Liveness: {"status": "ok"},
    service.Readiness: {
        "status": "ready",
        "database": True,
        "roles": dict.fromkeys(["api", "sync", "investigate", "schedule", "deliver"], True),
        "differing": [],
    },
    OpenApiDocument: {
        "openapi": "3.1.0",
        "info": {"title": "Tocsin", "version": "0.1.0"},
        "paths": {},
    },
    payloads.IncidentAlertEvent: _event(
        "incident-alert",
        {
            "incident_number": 4711,
            **{
                name: _incident[name] for name in ("title", "severity", "status", "provider", "url")
            },
        },
    ),
    payloads.InvestigationCompletedEvent: _event(
        "investigation-completed",
        {
            **_run,
            "title": "Sign-ins from new countries",
            "risk_score": 72.5,
            "entity_count": 9,
            "finding_count": 3,
            "url": f"{_URL}/investigations/{_run['session_id']}",
        },
    ),
    payloads.InvestigationFailedEvent: _event(
        "investigation-failed",
        {
            **_run,
            "error": "The provider cloud did not answer within 120 s.",
            "consecutive_failures": 2,
            "url": f"{_URL}/schedules/{_run['schedule_id']}",
        },
    ),
    payloads.ScheduleDisabledEvent: _event(
        "schedule-disabled",
        {
            "schedule_id": _run["schedule_id"],
            "schedule_name": _run["schedule_name"],
            "reason": "consecutive_failures",
            "consecutive_failures": 5,
            "last_error": "The provider cloud did not answer within 120 s.",
            "url": f"{_URL}/schedules/{_run['schedule_id']}",
        },
    ),
}
"""By the model of what is sent or answered."""
