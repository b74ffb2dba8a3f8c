"""Buttons of chat messages: only listed people triage, once per request, with their names."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from io import BytesIO

import pytest
from aiohttp import web
from sqlalchemy import insert, select

from api_server import CONFIGURATION, URL, open_api
from incident_rows import add_incidents
from remote_object_rows import BOARD
from slack_requests import ANA, SIGNING_SECRET, encode_form, make_action, make_payload, sign
from tocsin.incidents import load_history
from tocsin.incidents.triage import load_triage
from tocsin.model import MessageButton
from tocsin.store.tables import audit, destinations
from tocsin.testing.server import LoopbackServer
from tocsin.web.push_bodies import WEBHOOK_LIMIT
from tocsin.web.rate_limits import WEBHOOK_QUOTA
from tocsin_plugins.slack import Slack
from tocsin_plugins.slack.buttons import ButtonValues

on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
CHANNELS = replace(CONFIGURATION, channels=CONFIGURATION.channels | {"slack": Slack})
PATH = "/api/message-actions/soc-slack"
VALUES = ButtonValues(URL, SIGNING_SECRET)
BEN = "U9876543210"


@pytest.fixture
async def replies():
    """Return what Slack would show to people."""
    received: list[dict] = []

    async def take(request):
        received.append(await request.json())
        return web.Response(text="ok", status=received[-1].get("status", 200))

    app = web.Application()
    app.router.add_post("/reply", take)
    async with LoopbackServer(app) as server:
        yield received, server.url


@asynccontextmanager
async def serve(database, clock, slack_url):
    settings = {
        "bot_token": "xoxb-a-token",
        "channel": "C0123456789",
        "api_url": slack_url,
        "allow_networks": ["127.0.0.0/8"],
        "signing_secret": SIGNING_SECRET,
        "buttons": ["acknowledge", "assign", "true-positive", "false-positive"],
        "people": {ANA: "ana"},
    }
    row = {"name": "soc-slack", "plugin": "slack", "settings": settings}
    await database.write(
        lambda c: c.execute(insert(destinations), BOARD | row | {"managed_by": "api"})
    )
    quiet = settings | dict.fromkeys(("signing_secret", "buttons", "people"))
    quiet = {name: value for name, value in quiet.items() if value is not None}
    row = {"name": "quiet", "plugin": "slack", "settings": quiet}
    await database.write(
        lambda c: c.execute(insert(destinations), BOARD | row | {"managed_by": "api"})
    )
    row = {"name": "soar", "plugin": "webhook", "settings": {"url": "https://soar.example"}}
    await database.write(
        lambda c: c.execute(insert(destinations), BOARD | row | {"managed_by": "api"})
    )
    await database.write(add_incidents, 2)
    async with open_api(database, clock, CHANNELS) as api:
        yield api


@pytest.fixture
async def api(database, clock, replies):
    async with serve(database, clock, replies[1]) as api:
        api.slack_url = replies[1]
        yield api


def make_body(api, button, number=1, **members):
    value = VALUES.make(MessageButton(button), number)
    members.setdefault("response_url", f"{api.slack_url}/reply")
    return encode_form(make_payload(make_action(value), **members))


async def press(api, button="acknowledge", number=1, *, body=None, path=PATH, **members):
    body = make_body(api, button, number, **members) if body is None else body
    headers = sign(body, api.services.clock.now())
    return await api.client.post(path, data=BytesIO(body), headers=headers)


async def load(api, number=1):
    found = await api.services.database.read(load_triage, [number])
    return found.get(number)


async def test_a_listed_person_triages_with_provenance(api, replies):
    for button in ("acknowledge", "assign", "false-positive"):
        response = await press(api, button)
        assert (response.status, await response.json()) == (200, {"status": "accepted"})
    triage = await load(api)
    assert (triage["acknowledged_by"], triage["assignee"]) == ("ana", "ana")
    given = (triage["disposition"], triage["disposition_source"], triage["disposition_by"])
    assert given == ("false-positive", "person", "ana")
    history = await api.services.database.read(load_history, 1)
    assert {(change["by"], change["actor"]) for change in history} == {
        ("ana", f"destination:soc-slack:{ANA}")
    }
    query = select(audit.c.actor, audit.c.target, audit.c.address)
    is_triage = audit.c.action == "incident.triage"
    entries = await api.services.database.read(lambda c: c.execute(query.where(is_triage)).all())
    assert set(entries) == {(f"destination:soc-slack:{ANA}", "incident:1", "127.0.0.1")}
    assert len(entries) == 3
    assert [reply["text"] for reply in replies[0]] == [
        "Incident 1: acknowledged by ana.",
        "Incident 1: assigned to ana.",
        "Incident 1: the disposition is false-positive.",
    ]
    assert await load(api, 2) is None


@on_sqlite
async def test_pressing_again_changes_nothing(api, replies):
    await press(api)
    api.services.clock.advance(seconds=1)
    await press(api, trigger_id="another")
    assert replies[0][-1]["text"] == "Incident 1: already acknowledged."
    assert len(await api.services.database.read(load_history, 1)) == 1


async def test_a_replayed_request_has_no_effect(api, replies):
    body = make_body(api, "false-positive")
    headers = sign(body, api.services.clock.now())
    assert (await api.client.post(PATH, data=body, headers=headers)).status == 200
    api.services.clock.advance(seconds=1)
    await press(api, "true-positive")
    for _ in range(2):
        copies = (api.client.post(PATH, data=body, headers=headers) for _ in range(3))
        assert {copy.status for copy in await asyncio.gather(*copies)} == {200}
    assert (await load(api))["disposition"] == "true-positive"
    assert len(replies[0]) == 2


async def test_a_request_takes_effect_once_for_all_destinations_of_an_app(api, replies):
    def add_other(connection):
        found = select(destinations.c.settings).where(destinations.c.name == "soc-slack")
        row = {"name": "other", "plugin": "slack", "settings": connection.scalar(found)}
        connection.execute(insert(destinations), BOARD | row | {"managed_by": "api"})

    await api.services.database.write(add_other)
    body = make_body(api, "false-positive")
    headers = sign(body, api.services.clock.now())
    assert (await api.client.post(PATH, data=body, headers=headers)).status == 200
    api.services.clock.advance(seconds=1)
    await press(api, "true-positive")
    other = PATH.replace("soc-slack", "other")
    assert (await api.client.post(other, data=body, headers=headers)).status == 200
    assert (await load(api))["disposition"] == "true-positive"


@on_sqlite
async def test_a_person_who_is_not_listed_learns_nothing_but_the_remedy(api, replies):
    known = await press(api, user=BEN)
    unknown = await press(api, number=99, user=BEN)
    assert (known.status, await known.read()) == (unknown.status, await unknown.read())
    assert await load(api) is None
    assert replies[0][0] == replies[0][1]
    assert replies[0][0]["response_type"] == "ephemeral"
    assert f"to add your user ID {BEN} to the setting `people`" in replies[0][0]["text"]


@on_sqlite
@pytest.mark.parametrize(
    ("value", "text"),
    [
        (VALUES.make(MessageButton.ACKNOWLEDGE, 99), "There is no incident 99."),
        (VALUES.make(MessageButton.ACKNOWLEDGE, 0), "The button works."),
        (VALUES.make(MessageButton.DUPLICATE, 1), "no longer valid"),
        (VALUES.make(MessageButton.ACKNOWLEDGE, 2).replace(":2:", ":1:"), "no longer valid"),
        ("acknowledge:1:", "no longer valid"),
    ],
)
async def test_buttons_without_effect_say_why(api, replies, value, text):
    body = encode_form(
        make_payload(make_action(value), response_url=f"{api.slack_url}/reply"),
    )
    assert (await press(api, body=body)).status == 200
    assert text in replies[0][0]["text"]
    assert await load(api) is None


@on_sqlite
@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:9/", "http://169.254.169.254/", "https://example.com/", None]
)
async def test_replies_leave_for_no_other_host(api, replies, url):
    assert (await press(api, response_url=url)).status == 200
    assert (await load(api))["acknowledged_by"] == "ana"
    assert replies[0] == []


@on_sqlite
async def test_without_slack_the_change_is_stored(database, clock):
    async with serve(database, clock, "http://127.0.0.1:9") as api:
        api.slack_url = "http://127.0.0.1:9"
        assert (await press(api)).status == 200
        assert (await load(api))["acknowledged_by"] == "ana"


@on_sqlite
@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"X-Slack-Signature": "v0=00"}, 401),
        ({"X-Slack-Request-Timestamp": "1"}, 401),
        ({"Content-Type": "application/json"}, 415),
    ],
)
async def test_requests_that_slack_did_not_sign_change_nothing(api, replies, changed, status):
    body = make_body(api, "acknowledge")
    headers = sign(body, api.services.clock.now()) | changed
    assert (await api.client.post(PATH, data=body, headers=headers)).status == status
    assert await load(api) is None
    assert replies[0] == []


@on_sqlite
async def test_destinations_without_buttons_look_unknown(api):
    found = [await press(api, path=PATH.replace("soc-slack", name)) for name in NAMES]
    assert {response.status for response in found} == {401}
    details = [(await response.json())["detail"] for response in found]
    assert len(set(details)) == 1


NAMES = ("nobody", "quiet", "soar")


@on_sqlite
async def test_a_large_body_is_refused(api):
    assert (await press(api, body=b"payload=" + b"x" * WEBHOOK_LIMIT)).status == 413


@on_sqlite
async def test_requests_are_limited(api):
    for _ in range(WEBHOOK_QUOTA.burst):
        api.services.rate_limits.count_webhook("soc-slack")
    assert (await press(api)).status == 429
    assert await load(api) is None
