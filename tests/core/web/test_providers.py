"""How the SIEMs are read, over HTTP."""

from __future__ import annotations

import pytest

from api_server import problem
from tocsin.credentials import Scope
from tocsin.hookspecs import Provider
from tocsin.incidents.sync.lease import acquire_lease
from tocsin.web.schemas.providers import BackfillItem, BackfillList, ProviderItem, ProviderList

PROVIDERS = "/api/admin/providers"
BACKFILLS = "/api/admin/backfills"
ASKED = {
    "provider": "edge",
    "from": "2026-11-01T01:00:00+01:00",
    "to": "2026-11-08T00:00:00Z",
}
on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


async def test_every_provider_is_listed_with_how_it_does(api, admin, clock):
    settings = Provider.Settings(plugin="crowdsec")
    await api.services.database.write(acquire_lease, "edge", settings, 7, clock.now())
    listed = await admin.read(PROVIDERS)
    ProviderList.model_validate(listed)
    shown = [
        (provider["name"], provider["state"], provider["node"], provider["capabilities"])
        for provider in listed["providers"]
    ]
    assert shown == [
        ("edge", "waiting", "7", ["backfill", "refresh"]),
        ("sensors", "waiting", None, []),
    ]


async def test_a_backfill_is_asked_for_shown_and_cancelled(admin):
    made = await admin.ask("POST", BACKFILLS, 202, json=ASKED)
    BackfillItem.model_validate(made)
    assert (made["state"], made["from"], made["alert"], made["created_by"]) == (
        "running",
        "2026-11-01T00:00:00.000Z",
        False,
        "ana",
    )
    path = f"{BACKFILLS}/{made['id']}"
    assert await admin.read(path) == made
    listed = await admin.read(f"{BACKFILLS}?provider=edge")
    BackfillList.model_validate(listed)
    assert listed["backfills"] == [made]
    assert (await admin.read(f"{BACKFILLS}?provider=sensors"))["total"] == 0
    for _ in range(2):
        cancelled = await admin.ask("POST", f"{path}/cancel")
        assert cancelled["state"] == "cancelled"
    assert len(await admin.audited(action="backfill.cancel")) == 1
    [entry] = await admin.audited(action="backfill.create")
    assert entry["details"] == {name: made[name] for name in ("provider", "from", "to", "alert")}


@on_sqlite
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"provider": "egde"}, "did you mean"),
        ({"provider": "sensors"}, "does not support backfills"),
        ({"to": "2026-10-01T00:00:00Z"}, "before"),
        ({"to": "2026-11-08T00:00:00"}, "zone"),
        ({"to": "2026-11-22T00:00:00Z"}, "must be in the past"),
    ],
)
async def test_a_backfill_that_cannot_be_is_refused_with_the_reason(api, admin, change, words):
    response = await admin.send("POST", BACKFILLS, json=ASKED | change)
    document = await problem(response, 422)
    assert words in str(document)


@on_sqlite
@pytest.mark.parametrize(
    ("name", "detail"),
    [
        ("egde", "There is no provider 'egde'; did you mean 'edge'?"),
        ("zzz", "There is no provider 'zzz'."),
    ],
)
async def test_an_unknown_provider_is_reported_in_one_sentence(admin, name, detail):
    response = await admin.send("POST", BACKFILLS, json=ASKED | {"provider": name})
    assert (await problem(response, 422))["detail"] == detail


@on_sqlite
async def test_a_backfill_that_is_not_there_is_not_found(admin):
    for method, path in (("GET", f"{BACKFILLS}/bkf_1"), ("POST", f"{BACKFILLS}/bkf_1/cancel")):
        await problem(await admin.send(method, path), 404)


@on_sqlite
async def test_no_key_opens_them(api):
    key = await api.key(*Scope)
    for path in (PROVIDERS, BACKFILLS):
        await problem(await api.client.get(path, headers={"X-API-Key": key}), 403)


async def test_a_provider_is_stopped_and_enabled_with_reason_and_person(admin, clock):
    body = {"enabled": False, "duration": "PT4H", "reason": "The SIEM is overloaded"}
    stopped = await admin.ask("PATCH", f"{PROVIDERS}/edge", json=body)
    ProviderItem.model_validate(stopped)
    stop = {
        "by": "ana",
        "reason": "The SIEM is overloaded",
        "since": "2026-11-21T12:00:00.000Z",
        "until": "2026-11-21T16:00:00.000Z",
    }
    assert (stopped["state"], stopped["stop"]) == ("disabled", stop)
    assert "disabled by ana (reason: The SIEM is overloaded), until 2026" in stopped["reason"]
    proof = await admin.read("/api/admin/proof")
    [item] = proof["stops"]
    assert item == {
        "kind": "provider",
        "name": "edge",
        **stop,
        "ended_at": None,
        "ended_by": None,
    }
    enabled = await admin.ask("PATCH", f"{PROVIDERS}/edge", json={"enabled": True})
    assert (enabled["state"], enabled["stop"]) == ("waiting", None)
    assert await admin.ask("PATCH", f"{PROVIDERS}/edge", json={"enabled": True}) == enabled
    [ended, begun] = await admin.audited(target="provider:edge")
    assert (begun["action"], ended["action"]) == ("provider.disable", "provider.enable")
    assert begun["details"]["until"] == stop["until"]


@on_sqlite
@pytest.mark.parametrize(
    ("body", "part"),
    [
        ({}, "enabled"),
        ({"enabled": True, "reason": "why"}, "require `enabled` to be false"),
        ({"enabled": False, "until": "2026-11-21T11:00:00Z"}, "in the future"),
        ({"enabled": False, "duration": "PT1H", "until": "2026-11-22T00:00:00Z"}, "not both"),
        ({"enabled": False, "duration": "P1Y"}, "PT15M"),
        ({"enabled": False, "duration": {}}, "PT15M"),
        ({"enabled": False, "duration": "P999999W"}, "P366D"),
    ],
)
async def test_a_stop_that_is_contradictory_or_over_is_refused(admin, body, part):
    refused = await admin.ask("PATCH", f"{PROVIDERS}/edge", 422, json=body)
    assert part in str(refused["errors"])


@on_sqlite
async def test_a_provider_that_is_not_there_is_not_stopped(admin):
    await admin.ask("PATCH", f"{PROVIDERS}/nobody", 404, json={"enabled": False})
