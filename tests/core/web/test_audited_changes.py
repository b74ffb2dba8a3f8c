"""Each thing that a caller changes is in the audit log, in the transaction that did it."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import jwt
import pytest
from sqlalchemy import text, update

from api_callers import (
    AUDIT,
    CLIENTS,
    GOOD,
    GOOD_DESTINATION,
    KEYS,
    Caller,
    request_token,
)
from api_server import PUSHED, problem
from delivery_rows import NOW, add_delivery
from incident_rows import add_incidents, add_quarantined
from passkey_rows import PASSKEY, add_passkey
from session_rows import add_session
from tocsin import Window
from tocsin.credentials import (
    ConsoleRole,
    ConsoleSession,
    Scope,
    begin_session,
    list_sessions,
)
from tocsin.delivery import (
    DeliveryFilter,
    NewSuppression,
    create_destination,
    create_replay,
    create_suppression,
    measure_replay,
)
from tocsin.incidents import BackfillOrigin, create_backfill
from tocsin.recurrence import ScheduleDefinition
from tocsin.registry import ManagedBy
from tocsin.schedules import create_schedule
from tocsin.store.tables import destinations
from tocsin.web.context import AccessRole
from tocsin.web.endpoints import ENDPOINTS

CHANGES = [
    endpoint
    for endpoint in ENDPOINTS
    if endpoint.access is AccessRole.ADMIN and endpoint.method not in {"GET", "HEAD"}
]
START = "/api/v1/investigations/start"
QUERY = {"query": "Is 203.0.113.7 still at it?"}
NAMED = {"X-Request-Id": "req-7"}
BODIES = {
    "api-key.create": GOOD,
    "api-client.create": GOOD,
    "destination.create": GOOD_DESTINATION | {"name": "desk"},
    "destination.test-settings": {name: GOOD_DESTINATION[name] for name in ("plugin", "settings")},
    "destination.change": {"settings": {"timeout": "9s"}},
    "deliveries.replay": {"state": "dead"},
    "events.reroute": {"since": "2026-11-20T22:00:00Z"},
    "backfill.create": {
        "provider": "edge",
        "from": "2026-11-01T00:00:00Z",
        "to": "2026-11-08T00:00:00Z",
    },
    "person.create": {"name": "eve", "role": "viewer"},
    "person.change": {"role": "admin"},
    "provider.disable": {"enabled": False, "reason": "The SIEM is overloaded"},
    "entity.erase": {"entity": "user:j.doe"},
    "quarantine.retry": {"records": [1]},
    "schedule.create": {"name": "hourly", "query": "new logins", "cron": "@hourly"},
    "schedule.change": {"interval": "15m"},
    "suppression.create": {
        "name": "pentest",
        "owner": "ana",
        "reason": "Announced",
        "ends_at": "2026-11-22T12:00:00Z",
        "title": "Port scan*",
    },
}

QUERIES = {"/api/admin/console-sessions": "?principal=oidc:00u1"}
CONTACTING = {
    *("destination.create", "destination.change", "destination.test"),
    "destination.test-settings",
}


def test_every_admin_endpoint_that_changes_something_names_its_action():
    actions = Counter(endpoint.action for endpoint in CHANGES)
    assert all(actions)
    # one for a session or record, and one for all of a user or for several records
    repeated = {action for action, count in actions.items() if count > 1}
    assert repeated == {"console.session-end", "quarantine.retry"}


@pytest.fixture
async def paths(admin) -> dict[str, str]:
    """Something to change, by the names that paths have for it."""
    key, client = await admin.create_key(), await admin.create_client()
    name = await add_paused_destination(admin.api.services)
    database = admin.api.services.database
    delivery = await database.write(add_delivery, to=name)
    replay = await database.write(add_replay)
    await database.write(add_quarantined, PUSHED, NOW, content=b"[]")
    await database.write(add_rule, name)
    return {
        "person": "ben",
        "passkey_id": await database.write(add_passkey, NOW),
        "key_id": key["key_id"],
        "client_id": client["client_id"],
        "name": name,
        "plugin": "webhook",
        "provider": "edge",
        "delivery_id": delivery,
        "replay_id": replay,
        "record_id": "1",
        "backfill_id": await database.write(add_backfill),
        "schedule_id": await database.write(add_schedule),
        "console_session_id": await database.write(add_console_session),
        "number": str((await database.write(add_incidents))[0]),
    }


def add_console_session(connection) -> str:
    ends = NOW + timedelta(hours=1)
    session = ConsoleSession("oidc:00u1", "ben", ConsoleRole.ANALYST, ends)
    begin_session(connection, session, NOW)
    [row] = list_sessions(connection, NOW, 1)
    return row["id"]


def add_replay(connection) -> str:
    extent = measure_replay(connection, "dead", DeliveryFilter())
    return create_replay(connection, extent, "ana", NOW)["id"]


def add_backfill(connection) -> str:
    window = Window(NOW - timedelta(days=1), NOW)
    members = {"alert": False, "origin": BackfillOrigin.OPERATOR, "by": "ana", "now": NOW}
    return create_backfill(connection, "edge", window, **members)["id"]


def add_rule(connection, name: str) -> None:
    ends_at, title = NOW + timedelta(days=1), "Port scan*"
    rule = NewSuppression(name, "ana", "Announced", ends_at, None, title, None, None)
    create_suppression(connection, rule, "ana", NOW)


def add_schedule(connection) -> str:
    definition = ScheduleDefinition(query="new logins", interval="1h")
    members = {"managed_by": ManagedBy.API, "by": "ana", "now": NOW}
    return create_schedule(connection, "nightly", definition, **members).id


async def add_paused_destination(services) -> str:
    """Store a destination that can be changed, resumed and deleted, and return its name."""

    async def record_contact(*_) -> None: ...

    validator = services.destinations.validator
    written = await validator.validate_new(*GOOD_DESTINATION.values(), record_contact)

    def work(connection) -> None:
        create_destination(connection, written, "ana", services.clock.now())
        connection.execute(update(destinations).values(state="paused", reason="failing"))

    await services.database.write(work)
    return written.name


@pytest.mark.parametrize("endpoint", CHANGES, ids=lambda endpoint: endpoint.action)
async def test_a_change_leaves_one_entry_that_says_who_did_what_from_where(admin, paths, endpoint):
    if endpoint.action == "schedule.enable":
        await admin.ask("POST", f"/api/admin/schedules/{paths['schedule_id']}/disable")
    before = await admin.audited()
    body = {"json": BODIES[endpoint.action]} if endpoint.action in BODIES else {}
    path = endpoint.path.format(**paths) + QUERIES.get(endpoint.path, "")
    response = await admin.send(endpoint.method, path, headers=NAMED, **body)
    assert response.status == endpoint.status, await response.text()
    answer = await response.json()
    [entry, *rest] = await admin.audited()
    if endpoint.action in CONTACTING:
        assert rest.pop(0)["action"] == "destination.contact"  # before anything was sent
    assert list(map(_unsealed, rest)) == list(map(_unsealed, before))
    identifier = answer.get("key_id") or answer.get("client_id")
    assert entry["actor"] == "admin:ana"
    assert entry["action"] == endpoint.action
    named = {"destination": answer.get("name", paths["name"]), "delivery": answer.get("id")}
    named |= {"key": identifier, "client": identifier, "replay": answer.get("id")}
    named |= {"node": admin.api.services.node.name, "user": answer.get("pseudonym")}
    named |= dict.fromkeys(("provider", "suppression"), answer.get("name"))
    named |= {"person": answer.get("name"), "passkey": PASSKEY, "quarantine": answer.get("id", 1)}
    named |= {"backfill": answer.get("id"), "schedule": answer.get("schedule_id", answer.get("id"))}
    targets = {f"{kind}:{name}" for kind, name in named.items()}
    targets |= {"destination:(new)", "oidc:00u1", ""}  # "" for many events
    assert entry["target"] in targets
    assert entry["address"] == "127.0.0.1"
    assert entry["request_id"] == "req-7"
    assert entry["at"] == "2026-11-21T12:00:00.000Z"
    assert entry["count"] == 1
    _holds_no_secret(entry, answer)


def _unsealed(entry) -> dict:
    """Return the entry without what sealing adds, which an erasure does at once."""
    return {name: value for name, value in entry.items() if name not in {"position", "seal"}}


def _holds_no_secret(entry, answer) -> None:
    for name in ("api_key", "client_secret", "link"):
        if name in answer:
            assert answer[name] not in str(entry)
            assert answer[name][25:] not in str(entry)
    assert GOOD_DESTINATION["settings"]["secret"] not in str(entry)
    assert "argon2" not in str(entry)


async def test_reading_leaves_no_entry(admin, paths):
    before = await admin.audited()
    for endpoint in ENDPOINTS:
        if endpoint.access is AccessRole.ADMIN and endpoint.method == "GET":
            await admin.read(endpoint.path.format(**paths))
    assert await admin.audited() == before


async def test_a_change_that_fails_leaves_no_entry(admin, paths):
    key, client = f"{KEYS}/{paths['key_id']}", f"{CLIENTS}/{paths['client_id']}"
    await admin.ask("DELETE", key)
    await admin.ask("DELETE", client)
    before = await admin.audited()
    await problem(await admin.send("POST", KEYS, json=GOOD | {"name": ""}), 422)
    await problem(await admin.send("POST", KEYS, json=GOOD | {"scopes": ["all"]}), 400)
    await problem(await admin.send("POST", CLIENTS, json=GOOD | {"scopes": ["all"]}), 400)
    await problem(await admin.send("POST", f"{key}/rotate"), 409)
    await problem(await admin.send("POST", f"{client}/regenerate-secret"), 409)
    for missing in (f"{KEYS}/x", f"{CLIENTS}/x"):
        await problem(await admin.send("DELETE", missing), 404)
    assert await admin.audited() == before


@pytest.mark.parametrize("kind", ["API key", "access token"])
async def test_what_is_investigated_and_enriched_is_noted_with_whose_credential_it_was(
    api, admin, kind
):
    caller, actor = await credential(api, kind)
    [number] = await api.services.database.write(add_incidents)
    started = await caller.ask("POST", START, 202, json=QUERY | {"persona": "executive"})
    session = f"/api/v1/sessions/{started['session_id']}"
    await caller.ask("POST", f"{session}/cancel")
    await caller.ask("POST", f"{session}/message", 202, json={"message": "And yesterday?"})
    await caller.ask("POST", f"/api/v1/incidents/{number}/enrich")
    entries = await admin.audited()
    assert {entry["actor"] for entry in entries} == {actor}
    assert {entry["request_id"] for entry in entries} == {"req-7"}
    target = f"session:{started['session_id']}"
    assert [(entry["action"], entry["target"], entry["details"]) for entry in entries] == [
        ("incident.enrich", f"incident:{number}", {"changed": 0}),
        ("session.message", target, {"run": 2}),
        ("session.cancel", target, {"run": 1}),
        ("investigation.start", target, {"persona": "executive", "provider": None, "run": 1}),
    ]


async def credential(api, kind) -> tuple[Caller, str]:
    """Return a caller with every scope, and what the audit log calls it."""
    if kind == "API key":
        key = await api.key(*Scope)
        return Caller(api, {"X-API-Key": key} | NAMED), f"key:{key.split('_')[2]}"
    token = await api.access_token(*Scope)
    client_id = jwt.decode(token, options={"verify_signature": False})["client_id"]
    return Caller(api, {"Authorization": f"Bearer {token}"} | NAMED), f"client:{client_id}"


async def test_what_starts_messages_cancels_or_enriches_nothing_leaves_no_entry(api, admin):
    caller, _ = await credential(api, "API key")
    session = await api.services.database.write(add_session)
    for path, body, status in (
        (START, {}, 422),
        (START, QUERY | {"provider": "nobody"}, 422),
        ("/api/v1/sessions/x/message", {"message": "more"}, 404),
        ("/api/v1/sessions/x/cancel", None, 404),
        (f"/api/v1/sessions/{session}/cancel", None, 200),  # it has ended
        ("/api/v1/incidents/1/enrich", None, 404),
    ):
        assert (await caller.send("POST", path, json=body)).status == status
    assert await admin.audited() == []


@pytest.mark.parametrize(
    "database_url", ["sqlite", pytest.param("postgresql", marks=pytest.mark.full)], indirect=True
)
async def test_a_change_without_its_entry_does_not_happen(api, admin, paths):
    async def rename(before: str, after: str) -> None:
        statement = text(f"ALTER TABLE {before} RENAME TO {after}")
        await api.services.database.write(lambda c: c.execute(statement) and None)

    await rename("audit", "away")
    for response in (
        await admin.send("POST", KEYS, json=GOOD),
        await admin.send("DELETE", f"{KEYS}/{paths['key_id']}"),
        await admin.send("DELETE", f"{CLIENTS}/{paths['client_id']}"),
    ):
        assert response.status >= 500
    await rename("away", "audit")
    assert (await admin.read(KEYS))["total"] == 1
    assert (await admin.read(f"{KEYS}/{paths['key_id']}"))["status"] == "active"
    assert (await admin.read(f"{CLIENTS}/{paths['client_id']}"))["status"] == "active"
    assert len(await admin.audited()) == 2


async def test_the_log_is_filtered_by_action_actor_and_target(admin, paths):
    target = f"key:{paths['key_id']}"
    await admin.ask("DELETE", f"{KEYS}/{paths['key_id']}")
    assert len(await admin.audited(action="api-key.disable")) == 1
    assert len(await admin.audited(target=target)) == 2
    assert len(await admin.audited(actor="admin:ana")) == 3
    assert await admin.audited(actor="admin:bob") == []
    assert await admin.audited(action="api-key.disable", target="key:x") == []


async def test_the_log_is_paged_from_the_newest(admin, paths):
    for _ in range(3):
        await admin.rotate(paths["key_id"])
    everything = await admin.audited()
    found, query = [], {}
    while query.get("cursor") != "end":
        page = await admin.read(AUDIT, limit=2, **query)
        assert (page["total"], page["total_relation"]) == (5, "eq")
        found += page["entries"]
        query = {"cursor": page["next_cursor"] or "end"}
    assert found == everything
    assert [entry["action"] for entry in found][-1] == "api-key.create"


async def test_refusals_are_counted_by_address_and_reason(api, admin):
    for _ in range(3):
        await api.client.get(KEYS)
    await api.client.get("/api/v1/incidents", headers=admin.headers)
    await request_token(api, {"client_id": "cl_x", "client_secret": "x"})
    await api.services.refusals.flush(api.services.database)
    refused = await admin.audited(action="refused")
    counts = {entry["details"]["reason"]: entry["count"] for entry in refused}
    assert counts == {"credential refused": 4, "not permitted": 1}
    assert {entry["address"] for entry in refused} == {"127.0.0.1"}
