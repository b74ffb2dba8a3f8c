"""What schemathesis makes of the description: requests good and bad, judged by all its checks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

import pytest
import schemathesis
from hypothesis import strategies
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import Status, from_schema
from schemathesis.engine.events import NonFatalError, ScenarioFinished
from ulid import ULID

from api_callers import DESTINATIONS, GOOD_DESTINATION
from api_server import PUSH_TOKEN, PUSHED, Api
from incident_rows import add_incidents
from session_rows import add_session
from tocsin.credentials import Scope
from tocsin.web.endpoints import ENDPOINTS
from tocsin.web.pagination import ChangeCursor, CompositeCursor, PageCursor
from tocsin.web.routes import (
    api_clients,
    api_keys,
    audit,
    destinations,
    investigations,
    people,
    quarantine,
    schedules,
    search,
    status_mismatches,
    suppressions,
    triage,
)
from tocsin.web.schemas import alerts, console_sessions
from tocsin.web.schemas.examples import SESSION_ID

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)

CURSORS = {
    "/api/admin/api-keys": PageCursor(api_keys.LIST, "0").encode(),
    "/api/admin/api-clients": PageCursor(api_clients.LIST, "0").encode(),
    "/api/admin/audit": PageCursor(audit.LIST, "0").encode(),
    "/api/admin/deliveries": PageCursor("v", "0").encode(),
    "/api/admin/replays": PageCursor("r", "0").encode(),
    "/api/admin/backfills": PageCursor("b", "0").encode(),
    "/api/admin/quarantine": PageCursor(quarantine.LIST, "0").encode(),
    "/api/v1/status-mismatches": CompositeCursor(status_mismatches.LIST, (1, "soc")).encode(),
    "/api/admin/console-sessions": PageCursor(console_sessions.LIST, "0").encode(),
    "/api/admin/people": PageCursor.at_name(people.LIST, "a").encode(),
    "/api/admin/suppressions": PageCursor.at_name(suppressions.LIST, "0").encode(),
    "/api/admin/destinations": PageCursor.at_name(destinations.LIST, "0").encode(),
    "/api/admin/schedules": CompositeCursor(schedules.LIST, ("", "")).encode(),
    "/api/admin/schedules/{schedule_id}/runs": PageCursor(schedules.RUNS, "0").encode(),
    "/api/v1/incidents": ChangeCursor.START.encode(),
    "/api/v1/incidents/{number}/alerts": CompositeCursor(alerts.LIST, (0, "0")).encode(),
    "/api/v1/incidents/{number}/comments": PageCursor(triage.COMMENTS, "0").encode(),
    "/api/v1/investigations": PageCursor(investigations.LIST, "0").encode(),
    "/api/v1/investigations/{session_id}/steps": PageCursor(investigations.STEPS, "0").encode(),
    "/api/v1/search": CompositeCursor(search.RESULTS, (9, 9, 0)).encode(),
    "/api/v1/search/entities": CompositeCursor(search.ENTITIES, ("", 0, "", "", 0)).encode(),
}
START = "/api/v1/investigations/start"
SCHEDULES = "/api/admin/schedules"
# RFC 3339 has years and months too, which are refused here
DURATIONS = strategies.integers(1, 3650).map("P{}D".format)
BACKFILL = {"provider": "edge", "from": "2026-11-01T00:00:00Z", "to": "2026-11-08T00:00:00Z"}
RECURRING = {
    "query": "Is 203.0.113.7 still at it?",
    "provider": "edge",
    "cron": "0 2 * * *",
    "interval": None,
    "timezone": "UTC",
    "jitter": "PT5M",
    "starts_at": None,
    "ends_at": "2027-01-01T00:00:00Z",
    "timeout": "PT10M",
    "misfire_grace": "PT1H",
}
LONGEST = 7_000
INCIDENTS = "/api/v1/incidents"
STOPPABLE = (DESTINATIONS, "/api/admin/providers")
LABELS = {f"{verb}_{kind}" for verb in ("add", "remove") for kind in ("tags", "watchers")}
MENDED: dict[str, dict[str, Any]] = {
    "/api/admin/erasures": {"entity": "user:j.doe"},  # a value of a kind
    "/api/admin/replays": {"destination": None},  # otherwise it has to exist, or to have existed
    START: {"provider": BACKFILL["provider"]},
    # at least one condition, and an end within a year
    "/api/admin/suppressions": {
        "ends_at": "2026-12-01T00:00:00Z",
        "title": "Port scan*",
        "cidr": None,
        "provider": BACKFILL["provider"],
    },
}
# A deleted credential can still be read: it is disabled, and stays for the record
NOT_MEANT = {"use_after_free": {"enabled": False}}
# GET of the first reads the investigation of this id, PATCH of the others changes the schedule or
# the incident of this id, which there never are
NOT_AN_ID = [
    {"include-path": path, "checks": {"unsupported_method": {"enabled": False}}}
    for path in (START, f"{SCHEDULES}/upcoming", f"{INCIDENTS}/trend", f"{INCIDENTS}/detections")
]


def mend_query(query: dict[str, Any], path: str) -> None:
    if "cursor" in query:
        query["cursor"] = CURSORS[path]
    if "timespan" in query:
        query["timespan"] = "P7D"  # no longer than what is accounted for at once
    if "within" in query:
        query["within"] = "P7D"  # durations have a form of their own
    if "changed_after" in query:
        query["changed_after"] = CURSORS[path]
        query.pop("cursor", None)
    if path == "/api/v1/incidents" and query.keys() & {"cursor", "changed_after"}:
        query.pop("sort", None)  # a cursor is of one order
    if path == "/api/v1/graph/export":
        query.setdefault("value", "192.0.2.1")  # most of the others go with one
    if path.startswith("/api/v1/search") and "q" in query:
        query["q"] = "incident"  # few texts are in the language of queries


@schemathesis.hook
def filter_case(_context: object, case: schemathesis.Case) -> bool:
    """Leave out requests whose first line is so long that the HTTP parser refuses it."""
    values = [*(case.path_parameters or {}).values(), *(case.query or {}).values()]
    return sum(len(quote(str(value), errors="replace")) for value in values) < LONGEST


@schemathesis.hook
def before_call(_context: object, case: schemathesis.Case, _request: object) -> None:
    """Make good requests keep those rules that a JSON Schema cannot express."""
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    if "Idempotency-Key" in (case.headers or {}):
        case.headers["Idempotency-Key"] = str(ULID())
    (case.headers or {}).pop("If-Match", None)  # nothing has the tag of an example
    case.query = case.query or {}
    mend_query(case.query, case.operation.path)
    if isinstance(case.body, dict):
        mend_body(case.body, case.operation.path)
        if case.method == "PATCH" and case.operation.path.startswith(INCIDENTS):
            mend_triage(case.body.get("change", case.body))
    if case.operation.path.startswith("/api/push/"):
        case.body = {"external_id": "case-17"}  # what a body holds is the provider's to say


def mend_triage(change: dict[str, Any]) -> None:
    change["assignee"] = "ana"  # something changes
    change.pop("add_links", None)  # of incidents that there have to be
    for name in change.keys() & LABELS:
        change[name] = ["edge"]  # more than white space, and few in all
    if change.get("disposition") is None:
        change.pop("disposition_reason", None)
        change.pop("disposition_source", None)


def mend_body(body: dict[str, Any], path: str) -> None:
    if path.startswith(DESTINATIONS):
        if "plugin" in body:
            body["plugin"] = GOOD_DESTINATION["plugin"]
        if body.keys() & {"plugin", "settings"}:
            body["settings"] = GOOD_DESTINATION["settings"]
    if path.startswith(STOPPABLE) and body.keys() & {"until", "duration", "reason"}:
        body.pop("until", None)  # in the past, or beside a duration
        body |= {"enabled": False, "duration": "PT1H"}
    if path == "/api/admin/destination-tests":
        body |= {"plugin": GOOD_DESTINATION["plugin"], "settings": GOOD_DESTINATION["settings"]}
        body.pop("destination", None)
    if path == "/api/admin/backfills":
        body |= BACKFILL  # whose provider is there, and whose ends are in order
    if path.startswith(SCHEDULES):
        body |= RECURRING  # durations in bounds and in proportion, a zone that there is
    body |= MENDED.get(path, {})
    if path.startswith("/oauth/"):
        for name in ("client_id", "client_secret"):
            body.pop(name, None)


def drive(document: dict, configuration: Mapping[str, Any]) -> tuple[set[str], list[str]]:
    """Send what schemathesis finds worth sending; return what was called and what was wrong."""
    schemathesis.openapi.format("duration", DURATIONS)
    config = SchemathesisConfig.from_dict(dict(configuration))
    called: set[str] = set()
    faults: list[str] = []
    for event in from_schema(schemathesis.openapi.from_dict(document, config=config)).execute():
        if isinstance(event, NonFatalError):
            faults.append(f"{event.label}: {event.value}")
        if isinstance(event, ScenarioFinished):
            cases = event.recorder.cases.values()
            called |= {f"{case.value.method} {case.value.operation.path}" for case in cases}
            faults += failures(event.recorder)
    return called, faults


def failures(recorder) -> Iterator[str]:
    for checks in recorder.checks.values():
        for check in checks:
            if check.status is not Status.SUCCESS:
                found = check.failure_info
                yield f"{check.name}: {found.failure.message}\n{found.code_sample}"


async def rightful(api: Api) -> dict[str, Any]:
    """Return the settings by which every endpoint gets the credential that it asks for."""
    client = await api.client_credentials(*Scope)
    schemes = {
        "apiKey": {"api_key": await api.key(*Scope)},
        "adminToken": {"bearer": await api.token()},
        "clientSecret": {"username": client["client_id"], "password": client["client_secret"]},
        "pushToken": {"bearer": PUSH_TOKEN},
        "pushPassword": {"username": PUSHED, "password": PUSH_TOKEN},
    }
    return {"auth": {"openapi": schemes}}


async def only_key(api: Api) -> dict[str, Any]:
    return {"headers": {"X-API-Key": await api.key(*Scope)}}


async def only_admin(api: Api) -> dict[str, Any]:
    return {"headers": await api.admin()}


async def nobody(_api: Api) -> dict[str, Any]:
    return {"headers": {"X-Nobody": "true"}}


async def conform(api: Api, caller, **more: Any) -> None:
    lists = {each.path for each in ENDPOINTS if each.query and "cursor" in each.query.model_fields}
    assert lists == CURSORS.keys(), "a cursor is missing"
    await api.services.database.write(add_incidents, 3)
    session_id = await api.services.database.write(add_session)
    described = await (await api.client.get("/openapi.json")).text()
    document = json.loads(described.replace(SESSION_ID, session_id))  # its examples are sent
    credentials = await caller(api)
    generation = {
        "database": "none",
        "with-security-parameters": caller is rightful,
        **more.pop("generation"),
    }
    configuration = {
        "base-url": str(api.client.make_url("/")),
        "cache": {"enabled": False},
        "checks": NOT_MEANT,
        "operations": NOT_AN_ID,
        "continue-on-failure": True,
        "generation": generation,
        **credentials,
        **more,
    }
    called, faults = await asyncio.to_thread(drive, document, configuration)
    assert not faults, "\n\n".join(faults[:5])
    assert {f"{endpoint.method} {endpoint.path}" for endpoint in ENDPOINTS} <= called


# The same requests each time; the phase `coverage` alone has some thirty for each operation
@pytest.mark.parametrize(
    ("caller", "examples", "coverage"),
    [
        (rightful, 1, False),
        pytest.param(nobody, 1, False, marks=pytest.mark.full),
        pytest.param(rightful, 3, False, marks=[pytest.mark.full, pytest.mark.timeout(600)]),
        pytest.param(rightful, 1, True, marks=[pytest.mark.full, pytest.mark.timeout(600)]),
        pytest.param(only_key, 1, False, marks=pytest.mark.full),
        pytest.param(only_admin, 1, False, marks=pytest.mark.full),
    ],
)
async def test_the_api_is_as_described(api, caller, examples, coverage):
    generation = {"max-examples": examples, "deterministic": True}
    phases = {"coverage": {"enabled": coverage}, "stateful": {"enabled": False}}
    await conform(api, caller, generation=generation, phases=phases, seed=1)


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("caller", "examples"), [(rightful, 100), (only_key, 30), (only_admin, 30), (nobody, 30)]
)
async def test_the_api_is_as_described_however_long_one_looks(api, caller, examples):
    await conform(api, caller, generation={"max-examples": examples})
