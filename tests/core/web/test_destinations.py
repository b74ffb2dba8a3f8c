"""Administering destinations over HTTP, and trying them out."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from cryptography.fernet import Fernet
from sqlalchemy import insert, select, update
from standardwebhooks import Webhook as Verifier

from api_callers import DESTINATIONS, Admin
from api_server import CONFIGURATION, Api, open_api, problem
from delivery_rows import add_delivery
from tocsin import Channel, Delivery, Health, Misconfigured, Receipt, TryLater
from tocsin.credentials.vault import Vault
from tocsin.delivery import DestinationState, StopReason, load_destination
from tocsin.delivery.destinations.lifecycle import DestinationSpec, create_destination
from tocsin.delivery.destinations.repository import destination_to_row
from tocsin.delivery.destinations.samples import build_sample
from tocsin.events import emit_events
from tocsin.events.payloads import ENVELOPES
from tocsin.identifiers import new_id
from tocsin.incidents.documents import COLUMNS, represent_incident
from tocsin.model import Event, EventType
from tocsin.registry import ManagedBy
from tocsin.store.tables import deliveries, destinations
from tocsin.web.schemas.destinations import SampleOutcome

SECRET = "whsec_" + b64encode(bytes(range(32))).decode()
OTHER_SECRET = "whsec_" + b64encode(bytes(range(1, 33))).decode()
URL = "https://192.88.98.7/hooks/tocsin"  # public, and connected to by nobody here
SETTINGS = {"url": URL, "secret": SECRET}
INVALID = "/problems/invalid-request"
MANAGED = "/problems/managed-by-file"


@pytest.fixture
def soar(admin):
    """Create a destination, and return its record."""

    async def soar(name: str = "soar", **settings):
        body = {"name": name, "plugin": "webhook", "settings": SETTINGS | settings}
        return await admin.ask("POST", DESTINATIONS, 201, json=body)

    return soar


async def amend(admin, status: int = 200, name: str = "soar", **body):
    return await admin.ask("PATCH", f"{DESTINATIONS}/{name}", status, json=body)


async def wrong(admin, method: str = "POST", path: str = DESTINATIONS, **body) -> dict[str, str]:
    """Return what is wrong with a body, by its paths."""
    document = await problem(await admin.send(method, path, json=body), 422)
    assert document["type"] == INVALID
    assert SECRET not in str(document)
    return {mistake["path"]: mistake["detail"] for mistake in document["errors"]}


async def judge(admin, **settings) -> dict[str, str]:
    """Return what is wrong with these settings of a webhook."""
    return await wrong(admin, name="soar", plugin="webhook", settings=SETTINGS | settings)


async def stored(api: Api, name: str = "soar"):
    return await api.services.database.read(load_destination, name)


async def put(api: Api, name: str = "soar", **members) -> None:
    """Make a destination what it would be after something that is not done over HTTP."""

    def work(connection) -> None:
        destination = replace(load_destination(connection, name), **members)
        statement = update(destinations).where(destinations.c.name == name)
        connection.execute(statement.values(destination_to_row(destination)))

    await api.services.database.write(work)


async def from_file(api: Api, name: str = "soar", **settings) -> None:
    """Make a destination as applying a file does."""
    table = {"plugin": "webhook", "url": URL, "secret": {"env": "SOAR_SECRET"}, **settings}
    written = DestinationSpec(name, "webhook", table, ManagedBy.FILE)
    database, now = api.services.database, api.services.clock.now()
    await database.write(create_destination, written, "file", now)


# Creating


async def test_a_created_destination_is_answered_without_its_secrets(admin, soar):
    created = await soar(min_severity="High", headers={"Authorization": "Bearer s3cr3t"})
    assert created == {
        "name": "soar",
        "plugin": "webhook",
        "managed_by": "api",
        "state": "active",
        "reason": None,
        "detail": None,
        "stop": None,
        "settings": {"min_severity": "High", "url": URL},
        "secrets": ["headers", "secret"],
        "failures": 0,
        "failing_since": None,
        "held_until": None,
        "created_by": "ana",
        "created_at": "2026-11-21T12:00:00.000Z",
        "updated_at": "2026-11-21T12:00:00.000Z",
        "revision": 1,
    }
    detail = await admin.read(f"{DESTINATIONS}/soar")
    assert detail == created | {"waiting": 0, "dead": 0}


async def test_secrets_are_encrypted_at_rest_and_in_no_entry_of_the_audit_log(api, admin, soar):
    await soar()
    row = await stored(api)
    assert SECRET not in json.dumps(dict(row.settings))
    assert SECRET.encode() not in row.secrets
    [entry, *_] = await admin.audited()
    assert entry["action"] == "destination.create"
    assert entry["target"] == "destination:soar"
    assert entry["details"] == {"plugin": "webhook", "settings": ["secret", "url"]}


async def test_a_creation_that_is_sent_again_with_its_key_takes_effect_once(admin):
    body = {"name": "soar", "plugin": "webhook", "settings": SETTINGS}
    once = {"Idempotency-Key": "first"}
    first = await admin.ask("POST", DESTINATIONS, 201, json=body, headers=once)
    again = await admin.ask("POST", DESTINATIONS, 201, json=body, headers=once)
    assert again == first
    assert (await admin.read(DESTINATIONS))["total"] == 1


async def test_a_name_can_be_taken_once(api, admin, soar):
    await soar()
    await from_file(api, "desk")
    for name in ("soar", "desk"):
        body = {"name": name, "plugin": "webhook", "settings": SETTINGS}
        document = await problem(await admin.send("POST", DESTINATIONS, json=body), 409)
        assert document["type"] == "/problems/name-taken"


async def test_of_two_that_take_a_name_at_once_one_gets_it(nodes):
    headers = await nodes[0].admin()
    body = {"name": "soar", "plugin": "webhook", "settings": SETTINGS}
    sent = [Admin(node, headers).send("POST", DESTINATIONS, json=body) for node in nodes]
    responses = await asyncio.gather(*sent)
    assert sorted(response.status for response in responses) == [201, 409]


# What is wrong


async def test_every_wrong_setting_is_named(admin):
    mistakes = await judge(
        admin, url="ftp://x", concurrency=0, severity="High", when="data.", retry_schedule=["soon"]
    )
    assert set(mistakes) == {
        "settings.url",
        "settings.concurrency",
        "settings.severity",
        "settings.when",
        "settings.retry_schedule.0",
    }
    assert "unknown key" in mistakes["settings.severity"]


async def test_settings_that_do_not_go_together_are_refused(admin):
    mistakes = await judge(admin, secret=None)
    assert "Tocsin signs every request" in mistakes["settings"]


async def test_a_wrong_secret_is_not_shown(admin):
    mistakes = await judge(admin, secret="whsec_tooshort", previous_secret={"env": "HOME"})
    assert set(mistakes) == {"settings.secret", "settings.previous_secret"}
    assert "tooshort" not in str(mistakes)
    assert "as text" in mistakes["settings.previous_secret"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("ca_file", "/etc/ssl/own.pem"),
        ("client_certificate", "/etc/ssl/own.pem"),
        ("client_key", "/etc/ssl/own.key"),
        ("proxy", "http://proxy.example.org:3128"),
        ("secret", {"env": "HOME"}),
        ("signing_key", {"file": "/etc/passwd"}),
        ("headers", {"Authorization": {"file": "/etc/passwd"}}),
    ],
)
async def test_what_concerns_the_services_machine_is_refused(admin, field, value):
    assert set(await judge(admin, **{field: value})) == {f"settings.{field}"}


async def test_the_name_and_the_plugin_are_judged(admin):
    for name in ("", "hook:enricher", "a b", "x" * 101, "soar\n"):
        assert set(await wrong(admin, name=name, plugin="webhook", settings=SETTINGS)) == {"name"}
    mistakes = await wrong(admin, name="soar", plugin="webhok", settings=SETTINGS)
    assert "did you mean 'webhook'?" in mistakes["plugin"]
    assert set(await judge(admin, plugin="webhook")) == {"settings.plugin"}
    assert set(await judge(admin, template="nobody")) == {"settings.template"}


async def test_an_unknown_provider_is_refused_with_the_known_ones(admin, soar):
    mistakes = await judge(admin, providers=["edge", "sensor"])
    expected = "there is no provider 'sensor'; use one of: edge, sensors; did you mean 'sensors'?"
    assert mistakes == {"settings.providers.1": expected}
    assert len(await judge(admin, providers=["edge"] * 60 + ["sensor"] * 60)) == 50
    await soar(providers=["edge", "sensors"])
    changed = {"settings": {"providers": ["cloud"]}}
    mistakes = await wrong(admin, "PATCH", f"{DESTINATIONS}/soar", **changed)
    assert set(mistakes) == {"settings.providers.0"}


@pytest.mark.parametrize("value", ["'\0'", 2**80, 1e400, [{"x": "\0"}]])
async def test_what_cannot_be_stored_is_refused(admin, value):
    body = json.dumps({"name": "soar", "plugin": "webhook", "settings": SETTINGS | {"when": value}})
    headers = {"Content-Type": "application/json"}
    response = await admin.send("POST", DESTINATIONS, data=body, headers=headers)
    assert response.status in {400, 422}


async def test_a_backslash_and_digits_are_no_character_nul(soar):
    record = await soar(when=r"data.title != '\\u0000'")
    assert record["settings"]["when"] == r"data.title != '\\u0000'"


@pytest.mark.parametrize(
    "url",
    [
        "https://10.1.2.3/",
        "https://169.254.169.254/latest",
        "https://[::ffff:10.1.2.3]/",
        "https://localhost/",
    ],
)
async def test_a_url_that_leads_inside_is_refused_before_it_is_stored(admin, url):
    mistakes = await judge(admin, url=url)
    assert "is not allowed" in str(mistakes)
    assert (await admin.read(DESTINATIONS))["total"] == 0


async def test_networks_have_to_lie_inside_what_the_service_allows(database, clock):
    inside = {"allow_networks": ["10.20.30.0/24"]}
    async with open_api(database, clock, allow_networks=()) as api:
        mistakes = await judge(Admin(api, await api.admin()), **inside)
        assert set(mistakes) == {"settings.allow_networks.0"}
    async with open_api(database, clock, allow_networks="10.20.0.0/16,fd00::/8") as api:
        admin = Admin(api, await api.admin())
        networks = ["10.20.1.0/24", "10.0.0.0/8", "::/0"]
        mistakes = await judge(admin, allow_networks=networks)
        assert set(mistakes) == {"settings.allow_networks.1", "settings.allow_networks.2"}
        body = {"name": "soar", "plugin": "webhook", "settings": SETTINGS | inside}
        record = await admin.ask("POST", DESTINATIONS, 201, json=body)
        assert record["settings"]["allow_networks"] == ["10.20.30.0/24"]
        await amend(admin, settings={"url": "https://10.20.30.4/", "secret": SECRET})
        mistakes = await wrong(
            admin, "PATCH", f"{DESTINATIONS}/soar", settings={"allow_networks": None}
        )
        assert "is not allowed" in str(mistakes)
    async with open_api(database, clock, allow_networks=()) as api:  # allowed no more
        result = await Admin(api, await api.admin()).ask("POST", f"{DESTINATIONS}/soar/test")
        assert result["outcome"] == "misconfigured"
        assert "TOCSIN_ALLOW_NETWORKS" in result["reason"]


class Moody(Channel):
    """Is found to be as its settings say."""

    class Settings(Channel.Settings):
        mood: str = "well"

    async def check(self) -> Health:
        match self.settings.mood:
            case "away":
                raise TryLater("the receiver is away")
            case "unusable":
                raise Misconfigured("the account has no mailbox")
            case "broken":
                raise KeyError("mood")
            case "bad":
                return Health(detail="", problems=("mood: it is bad", "and so is the weather"))
        return Health(detail="well")

    async def deliver(self, delivery: Delivery) -> Receipt:
        if self.settings.mood == "stubborn":
            await asyncio.Event().wait()
        told = json.dumps(dict(delivery.event.data)).encode()
        return Receipt(status=201, response=told, remote_id="OBJ-7")


@asynccontextmanager
async def moody(database, clock):
    configuration = replace(CONFIGURATION, channels={"moody": Moody})
    async with open_api(database, clock, configuration) as api:
        yield api, Admin(api, await api.admin())


async def test_the_plugin_is_asked_and_what_passes_by_itself_is_no_objection(database, clock):
    async def create_one(admin, mood: str, status: int):
        body = {"name": mood, "plugin": "moody", "settings": {"mood": mood}}
        answer = await admin.ask("POST", DESTINATIONS, status, json=body)
        return {mistake["path"]: mistake["detail"] for mistake in answer.get("errors", ())}

    async with moody(database, clock) as (_, admin):
        assert await create_one(admin, "well", 201) == {}
        assert await create_one(admin, "away", 201) == {}
        found = await create_one(admin, "unusable", 422)
        assert found == {"settings": "the account has no mailbox"}
        found = await create_one(admin, "bad", 422)
        assert found == {"settings.mood": "it is bad", "settings": "and so is the weather"}
        assert "the plugin failed" in (await create_one(admin, "broken", 422))["settings"]


# Reading


async def test_the_list_leads_from_page_to_page_by_name(admin, soar):
    for name in ("delta", "alpha", "charlie", "bravo"):
        await soar(name)
    await admin.ask("DELETE", f"{DESTINATIONS}/charlie")
    first = await admin.read(DESTINATIONS, limit=2)
    assert [destination["name"] for destination in first["destinations"]] == ["alpha", "bravo"]
    assert first["total"] == 3
    last = await admin.read(DESTINATIONS, limit=2, cursor=first["next_cursor"])
    assert [destination["name"] for destination in last["destinations"]] == ["delta"]
    assert last["next_cursor"] is None


async def test_the_list_can_be_of_one_state(admin, soar):
    for name in ("alpha", "bravo", "charlie"):
        await soar(name)
    await amend(admin, name="alpha", enabled=False)
    await admin.ask("DELETE", f"{DESTINATIONS}/bravo")
    for state, name in (("Active", "charlie"), ("disabled", "alpha"), ("deleted", "bravo")):
        page = await admin.read(DESTINATIONS, state=state)
        assert [destination["name"] for destination in page["destinations"]] == [name]
        assert page["total"] == 1
    await problem(await admin.send("GET", DESTINATIONS, params={"state": "gone"}), 422)


async def test_the_detail_tells_how_much_waits(api, admin, soar):
    await soar()
    now = api.services.clock.now()
    events = [
        Event(
            id=new_id("evt"),
            event_type=EventType.SCHEDULE_DISABLED,
            timestamp=now,
            data={},
            subject="schedule:7",
        )
        for _ in range(5)
    ]
    states = ("pending", "on_hold", "dead", "dead", "delivered")

    def work(connection) -> None:
        emit_events(connection, events)
        for event, state in zip(events, states, strict=True):
            row = {
                "id": new_id("dlv"),
                "event_id": event.id,
                "destination": "soar",
                "subject": event.subject,
                "state": state,
                "attempts": 0,
                "schedule_start": 0,
                "due_at": now,
                "created_at": now,
            }
            connection.execute(insert(deliveries), row)

    await api.services.database.write(work)
    detail = await admin.read(f"{DESTINATIONS}/soar")
    assert (detail["waiting"], detail["dead"]) == (2, 2)
    assert "waiting" not in (await admin.read(DESTINATIONS))["destinations"][0]


async def test_of_a_file_no_reference_to_a_secret_is_shown(api, admin):
    await from_file(api, headers={"X-Source": "tocsin"}, min_severity="Low")
    record = await admin.read(f"{DESTINATIONS}/soar")
    assert record["managed_by"] == "file"
    assert record["settings"] == {"min_severity": "Low", "url": URL}
    assert record["secrets"] == ["headers", "secret"]


async def test_of_a_plugin_that_is_not_there_only_what_all_have_is_shown(database, clock, api):
    await from_file(api, min_severity="Low")
    async with moody(database, clock) as (_, admin):
        record = await admin.read(f"{DESTINATIONS}/soar")
        assert record["settings"] == {"min_severity": "Low"}


@pytest.mark.parametrize("name", ["nobody", "hook:nobody", "x" * 300, "%00"])
async def test_what_is_not_there_is_404(admin, name):
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/resume"), ("POST", "/test")):
        await problem(await admin.send(method, f"{DESTINATIONS}/{name}{path}"), 404)
    body = {"enabled": False}
    await problem(await admin.send("PATCH", f"{DESTINATIONS}/{name}", json=body), 404)


# Changing


async def test_settings_are_replaced_and_removed_one_by_one(api, admin, soar):
    await soar(min_severity="High", events=["incident-alert"])
    api.services.clock.advance(minutes=30)
    changed = await amend(admin, settings={"min_severity": None, "timeout": "10s"})
    assert changed["settings"] == {"events": ["incident-alert"], "timeout": "10s", "url": URL}
    assert changed["secrets"] == ["secret"]
    assert changed["revision"] == 2
    assert changed["updated_at"] == "2026-11-21T12:30:00.000Z"
    [entry, *_] = await admin.audited()
    assert entry["action"] == "destination.change"
    assert entry["details"] == {"settings": ["min_severity", "timeout"]}


async def test_secrets_are_rotated_without_being_told(api, admin, soar):
    await soar()
    changed = await amend(admin, settings={"previous_secret": SECRET, "secret": OTHER_SECRET})
    assert changed["secrets"] == ["previous_secret", "secret"]
    assert SECRET not in str(changed)
    changed = await amend(admin, settings={"previous_secret": None})
    assert changed["secrets"] == ["secret"]
    assert "secret" in str(await wrong_change(admin, secret=None))


@pytest.mark.parametrize("url", ["https://192.88.98.8/", "https://192.88.98.7:8443/hooks/tocsin"])
async def test_secrets_are_not_kept_for_another_server(api, admin, soar, url):
    await soar(headers={"Authorization": "Bearer abc"})
    before = await stored(api)
    mistakes = await wrong_change(admin, url=url)
    assert set(mistakes) == {"settings.headers", "settings.secret"}
    assert "enter the secret again or set it to null" in mistakes["settings.headers"]
    assert set(await wrong_change(admin, url=url, headers=None)) == {"settings.secret"}
    assert await stored(api) == before


async def test_secrets_are_kept_for_another_path_of_the_same_server(admin, soar):
    await soar(headers={"Authorization": "Bearer abc"})
    changed = await amend(admin, settings={"url": f"{URL}/another?path=1"})
    assert changed["secrets"] == ["headers", "secret"]


async def test_a_new_server_takes_new_secrets(admin, soar):
    await soar(headers={"Authorization": "Bearer abc"})
    new = {"url": "https://192.88.98.8/", "secret": OTHER_SECRET, "headers": None}
    changed = await amend(admin, settings=new)
    assert changed["secrets"] == ["secret"]
    contact = (await admin.audited())[1]
    assert contact["action"] == "destination.contact"
    assert contact["details"] == {"targets": ["https://192.88.98.8:443"]}


async def test_secrets_of_another_encryption_key_are_entered_again(api, admin, soar):
    await soar()
    vault = Vault(Fernet.generate_key().decode(), source="another key")
    secrets = vault.encrypt(json.dumps({"secret": SECRET}).encode())
    change = update(destinations).values(secrets=secrets)
    await api.services.database.write(lambda connection: connection.execute(change) and None)
    [shown] = (await admin.ask("GET", DESTINATIONS))["destinations"]
    assert shown["secrets"] == []
    assert set(await wrong_change(admin, timeout="5s")) == {"settings"}
    changed = await amend(admin, settings={"secret": OTHER_SECRET})
    assert changed["secrets"] == ["secret"]


async def wrong_change(admin, **settings) -> dict[str, str]:
    return await wrong(admin, "PATCH", f"{DESTINATIONS}/soar", settings=settings)


async def test_a_wrong_change_changes_nothing(api, admin, soar):
    await soar()
    before = await stored(api)
    assert set(await wrong_change(admin, url="https://10.0.0.1/", x=1)) == {"settings.x"}
    inside = await wrong_change(admin, url="https://10.0.0.1/", secret=SECRET)
    assert "is not allowed" in str(inside)
    assert await wrong(admin, "PATCH", f"{DESTINATIONS}/soar") == {
        "": "provide settings, enabled or both"
    }
    assert await stored(api) == before


async def test_a_change_of_nothing_is_no_change(api, admin, soar):
    await soar()
    before, entries = await stored(api), await admin.audited()
    for body in ({"settings": {}}, {"settings": None}, {"enabled": True}, {"enabled": None}):
        assert (await amend(admin, **body))["revision"] == 1
    assert await stored(api) == before
    assert await admin.audited() == entries


async def test_it_is_stopped_and_goes_on(admin, soar):
    await soar()
    stopped = await amend(admin, enabled=False)
    assert (stopped["state"], stopped["reason"], stopped["revision"]) == ("disabled", "manual", 2)
    assert (await amend(admin, enabled=False))["revision"] == 2
    assert (await amend(admin, settings={"timeout": "9s"}))["state"] == "disabled"
    active = await amend(admin, enabled=True)
    assert (active["state"], active["reason"], active["revision"]) == ("active", None, 4)
    entries = [each for each in await admin.audited() if each["action"] != "destination.contact"]
    actions = [entry["action"] for entry in entries[:3]]
    assert actions == ["destination.enable", "destination.change", "destination.disable"]


@pytest.mark.parametrize(
    "stop",
    [(DestinationState.PAUSED, StopReason.FAILING), (DestinationState.DISABLED, StopReason.GONE)],
)
async def test_new_settings_end_a_stop_that_came_by_itself(api, admin, soar, stop):
    await soar()
    await put(api, state=stop[0], reason=stop[1], detail="410 Gone")
    changed = await amend(admin, settings={"timeout": "9s"})
    assert (changed["state"], changed["reason"], changed["detail"]) == ("active", None, None)


async def test_a_change_of_what_has_changed_meanwhile_is_refused(database, clock):
    """The new settings were made from ones that are no more."""
    async with moody(database, clock) as (_, admin):
        body = {"name": "soar", "plugin": "moody"}
        await admin.ask("POST", DESTINATIONS, 201, json=body)
        arrived, go_on = asyncio.Event(), asyncio.Event()

        async def check(_self) -> Health:
            arrived.set()
            await go_on.wait()
            return Health(detail="")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Moody, "check", check)
            slow = asyncio.create_task(amend(admin, 409, settings={"timeout": "9s"}))
            await arrived.wait()
            await amend(admin, enabled=False)
            go_on.set()
            assert "Another request changed the destination" in (await slow)["detail"]


async def test_what_others_manage_is_read_only(api, admin):
    await from_file(api)
    hook = DestinationSpec("hook:enricher", "enricher", {}, ManagedBy.PLUGIN)
    await api.services.database.write(create_destination, hook, "file", api.services.clock.now())
    for name in ("soar", "hook:enricher"):
        path = f"{DESTINATIONS}/{name}"
        change = {"settings": {"event_types": ["incident-alert"]}}
        for method, body in (("PATCH", change), ("DELETE", None)):
            document = await problem(await admin.send(method, path, json=body), 409)
            assert document["type"] == MANAGED
            assert "plugins.toml" in document["detail"]


async def test_what_others_manage_is_stopped_and_enabled(api, admin):
    await from_file(api)
    path = f"{DESTINATIONS}/soar"
    stopped = await admin.ask("PATCH", path, json={"enabled": False})
    assert (stopped["state"], stopped["reason"]) == ("disabled", "manual")
    enabled = await admin.ask("PATCH", path, json={"enabled": True})
    assert (enabled["state"], enabled["reason"]) == ("active", None)
    removed = update(destinations).values(state="disabled", reason="removed-from-file")
    await api.services.database.write(lambda connection: connection.execute(removed))
    document = await problem(await admin.send("PATCH", path, json={"enabled": True}), 409)
    assert "no longer contains the destination" in document["detail"]


# Deleting


async def test_a_deleted_destination_is_gone_for_good_and_its_name_free(api, admin, soar):
    await soar()
    deleted = await admin.ask("DELETE", f"{DESTINATIONS}/soar")
    assert (deleted["state"], deleted["secrets"]) == ("deleted", [])
    assert (await stored(api)).secrets is None
    assert await admin.ask("DELETE", f"{DESTINATIONS}/soar") == deleted
    assert (await admin.read(f"{DESTINATIONS}/soar"))["state"] == "deleted"
    assert len([e for e in await admin.audited() if e["action"] == "destination.delete"]) == 1
    for method, path, body in (
        ("PATCH", "", {"enabled": True}),
        ("POST", "/resume", None),
        ("POST", "/test", {}),
    ):
        response = await admin.send(method, f"{DESTINATIONS}/soar{path}", json=body)
        assert "create a new one" in (await problem(response, 409))["detail"]
    anew = await soar(secret=OTHER_SECRET)
    assert (anew["state"], anew["revision"]) == ("active", 3)


async def test_what_a_file_names_no_more_can_be_deleted(api, admin):
    await from_file(api)
    await put(api, state=DestinationState.DISABLED, reason=StopReason.REMOVED)
    assert (await admin.ask("DELETE", f"{DESTINATIONS}/soar"))["state"] == "deleted"


# Resuming


@pytest.mark.parametrize(
    "stop",
    [(DestinationState.PAUSED, StopReason.FAILING), (DestinationState.DISABLED, StopReason.GONE)],
)
async def test_an_automatic_stop_is_ended_whatever_manages_it(api, admin, stop):
    await from_file(api)
    await put(api, state=stop[0], reason=stop[1], detail="why")
    resumed = await admin.ask("POST", f"{DESTINATIONS}/soar/resume")
    assert (resumed["state"], resumed["reason"], resumed["revision"]) == ("active", None, 2)
    assert resumed["released"] == 0
    assert await admin.ask("POST", f"{DESTINATIONS}/soar/resume") == resumed
    resumes = [e for e in await admin.audited() if e["action"] == "destination.resume"]
    assert [entry["details"] for entry in resumes] == [{"reason": stop[1], "released": 0}]


async def test_deliveries_on_hold_are_released_even_where_the_destination_is_active(api, admin):
    await from_file(api)
    for number in range(3):
        await api.services.database.write(add_delivery, "on_hold", to="soar", number=number)
    resumed = await admin.ask("POST", f"{DESTINATIONS}/soar/resume")
    assert (resumed["state"], resumed["revision"], resumed["released"]) == ("active", 1, 3)
    states = await api.services.database.read(lambda c: list(c.scalars(select(deliveries.c.state))))
    assert states == ["pending"] * 3
    [entry] = [e for e in await admin.audited() if e["action"] == "destination.resume"]
    assert entry["details"] == {"reason": None, "released": 3}


async def test_resuming_an_active_destination_retries_what_waits_for_its_next_attempt(api, admin):
    await from_file(api)
    due_at, now = api.services.clock.now() + timedelta(hours=10), api.services.clock.now()
    await api.services.database.write(add_delivery, "pending", to="soar", due_at=due_at)
    assert (await admin.ask("POST", f"{DESTINATIONS}/soar/resume"))["released"] == 1
    read = api.services.database.read
    assert await read(lambda c: c.scalars(select(deliveries.c.due_at)).one()) == now


@pytest.mark.parametrize("reason", [StopReason.MANUAL, StopReason.REMOVED])
async def test_what_someone_stopped_is_not_resumed(api, admin, reason):
    await from_file(api)
    await put(api, state=DestinationState.DISABLED, reason=reason)
    await problem(await admin.send("POST", f"{DESTINATIONS}/soar/resume"), 409)
    assert (await stored(api)).reason is reason


# Trying out


@pytest.fixture
async def receiver():
    """A receiver that answers as it is told, and keeps what it was sent."""
    received = []

    async def take(request: web.Request) -> web.Response:
        received.append((dict(request.headers), await request.read()))
        return web.Response(status=server.answers, text="x" * 20_000)

    app = web.Application()
    app.router.add_post("/", take)
    async with TestServer(app) as server:
        server.answers, server.received = 200, received
        yield server


@pytest.fixture
async def local(database, clock, receiver):
    """An admin of an API that may reach loopback, and a destination there."""
    async with open_api(database, clock) as api:
        admin = Admin(api, await api.admin())
        networks = {"allow_networks": ["127.0.0.0/8"]}
        settings = {"url": str(receiver.make_url("/")), "secret": SECRET, **networks}
        body = {"name": "soar", "plugin": "webhook", "settings": settings}
        await admin.ask("POST", DESTINATIONS, 201, json=body)
        yield admin


async def test_a_test_sends_a_marked_event_signed_and_stores_none(local, receiver):
    result = await local.ask("POST", f"{DESTINATIONS}/soar/test")
    assert (result["outcome"], result["status"], result["reason"]) == ("delivered", 200, None)
    assert len(result["response"]) == 16_384
    [(headers, body)] = receiver.received
    assert headers["webhook-id"] == result["event_id"]
    assert result["event_id"].startswith("evt_")
    sent_at = datetime.fromtimestamp(int(headers["webhook-timestamp"]), UTC)
    signature = Verifier(SECRET).sign(result["event_id"], sent_at, body.decode())
    assert headers["webhook-signature"] == signature
    assert "Test from Tocsin" in body.decode()
    document = json.loads(body)
    assert document["data"]["incident_number"] == 0
    ENVELOPES[EventType.INCIDENT_ALERT].model_validate(document)
    rows = await local.api.services.database.read(lambda c: c.execute(select(deliveries)).all())
    assert rows == []
    [entry, *_] = await local.audited()
    assert entry["action"] == "destination.test"
    assert entry["details"] == {"event_type": "incident-alert", "outcome": "delivered"}


async def test_a_disabled_or_paused_destination_can_be_tried_and_stays_so(local, receiver):
    await amend(local, enabled=False)
    assert (await local.ask("POST", f"{DESTINATIONS}/soar/test"))["outcome"] == "delivered"
    await put(local.api, state=DestinationState.PAUSED, reason=StopReason.FAILING)
    receiver.answers = 503
    result = await local.ask("POST", f"{DESTINATIONS}/soar/test")
    assert (result["outcome"], result["status"]) == ("later", 503)
    receiver.answers = 410
    assert (await local.ask("POST", f"{DESTINATIONS}/soar/test"))["outcome"] == "refused"
    record = await local.read(f"{DESTINATIONS}/soar")
    assert (record["state"], record["reason"], record["failures"]) == ("paused", "failing", 0)


@pytest.mark.parametrize("kind", EventType)
async def test_every_kind_of_event_can_be_sent(database, clock, kind):
    async with moody(database, clock) as (_, admin):
        await admin.ask("POST", DESTINATIONS, 201, json={"name": "desk", "plugin": "moody"})
        body = {"event_type": kind.upper()}
        result = await admin.ask("POST", f"{DESTINATIONS}/desk/test", json=body)
    assert (result["outcome"], result["status"]) == ("delivered", 201)
    assert result["remote_id"] == "OBJ-7"
    assert "Test from Tocsin" in result["response"]


@pytest.mark.parametrize("kind", EventType)
def test_a_sample_tells_what_its_kind_tells(clock, kind):
    event = build_sample(kind, "https://tocsin.example", clock.now())
    ENVELOPES[kind].model_validate(
        {"event_type": kind, "timestamp": event.timestamp, "data": event.data}
    )


def test_a_samples_incident_is_told_as_any_other(clock):
    told = build_sample(EventType.INCIDENT_ALERT, "", clock.now()).context["incident"]
    moments = dict.fromkeys(("occurred_at", "created_at", "updated_at"), clock.now())
    columns = dict.fromkeys(COLUMNS) | {"number": 0} | moments
    assert set(told) == set(represent_incident(columns, [], public_url=""))


async def test_a_channel_that_cannot_be_made_is_an_outcome(database, clock, api, admin, soar):
    await soar()
    async with moody(database, clock) as (_, other):
        result = await other.ask("POST", f"{DESTINATIONS}/soar/test")
    assert result["outcome"] == "misconfigured"
    assert "not available on this node" in result["reason"]


async def test_a_test_ends_though_its_channel_does_not(database, clock, monkeypatch):
    monkeypatch.setattr("tocsin.delivery.destinations.samples.PATIENCE", timedelta(milliseconds=50))
    async with moody(database, clock) as (_, admin):
        body = {"name": "desk", "plugin": "moody", "settings": {"mood": "stubborn"}}
        await admin.ask("POST", DESTINATIONS, 201, json=body)
        result = await admin.ask("POST", f"{DESTINATIONS}/desk/test")
    assert result["outcome"] == "later"
    assert "no response within" in result["reason"]


@pytest.mark.parametrize("kind", ["incident", 7, None])
async def test_a_wrong_test_is_refused(admin, soar, kind):
    await soar()
    path = f"{DESTINATIONS}/soar/test"
    assert set(await wrong(admin, "POST", path, event_type=kind)) == {"event_type"}


# Testing settings before they are stored

TESTS = "/api/admin/destination-tests"


async def test_settings_are_tested_without_being_stored(local, receiver):
    networks = {"allow_networks": ["127.0.0.0/8"]}
    settings = {"url": str(receiver.make_url("/")), "secret": SECRET, **networks}
    before = await local.audited()
    sent = await local.ask("POST", TESTS, json={"plugin": "webhook", "settings": settings})
    SampleOutcome.model_validate(sent)
    assert sent["outcome"] == "delivered"
    assert (await local.read(DESTINATIONS))["total"] == 1  # the one that was there
    [test, contact, *_] = await local.audited()
    assert (test["action"], test["target"]) == ("destination.test-settings", "destination:(new)")
    assert contact["action"] == "destination.contact"
    assert len(await local.audited()) == len(before) + 2
    assert SECRET not in str(test) + str(contact)


async def test_a_test_keeps_stored_secrets_only_for_the_same_server(local):
    body = {"destination": "soar", "settings": {"timeout": "1s"}}
    assert (await local.ask("POST", TESTS, json=body))["outcome"] == "delivered"
    body = {"destination": "soar", "settings": {"url": "https://other.example.com/"}}
    refused = await local.ask("POST", TESTS, 422, json=body)
    assert "secrets are not kept" in str(refused["errors"])
    assert (await local.read(f"{DESTINATIONS}/soar"))["revision"] == 1


async def test_a_test_does_not_reach_private_networks_and_is_limited(admin):
    body = {"plugin": "webhook", "settings": {"url": "https://10.0.0.1/", "secret": SECRET}}
    refused = await admin.ask("POST", TESTS, 422, json=body)
    assert "is not allowed" in str(refused["errors"])
    for _ in range(29):
        await admin.ask("POST", TESTS, 422, json={"plugin": "nothing"})
    await admin.ask("POST", TESTS, 429, json=body)


@pytest.mark.parametrize("body", [{}, {"plugin": "webhook", "destination": "soar"}])
async def test_a_test_is_of_a_new_destination_or_of_one_that_is_there(admin, body):
    assert "plugin or destination" in str(await admin.ask("POST", TESTS, 422, json=body))
    await admin.ask("POST", TESTS, 404, json={"destination": "soar"})
