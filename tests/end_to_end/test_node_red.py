"""An incident's whole way into a SOAR platform and back: a real Node-RED with the shipped flow."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio
from sqlalchemy import URL

from .node_red import WITHOUT_SECRET, NodeRed, Operator, signed, why_not
from .service import SECRET, ForkedService, destination

KEY = base64.b64decode(SECRET.removeprefix("whsec_"))
ANOTHER_KEY = b"another" * 5
NOTHING_TO_DO = '{"event_type": "schedule-disabled", "data": {"schedule_name": "é"}}'.encode()
SCOPES = ["incidents:read", "investigations:write"]

pytestmark = pytest.mark.asyncio(loop_scope="module")


def alert(number: int) -> bytes:
    event = {"event_type": "incident-alert", "data": {"incident_number": number}}
    return json.dumps(event).encode()


def destinations(node_red: NodeRed, folder: Path) -> tuple[str, str]:
    """Return `soar`, and `stranger`, whose secret is not the flow's."""
    (folder / "another-secret").write_text("whsec_" + base64.b64encode(ANOTHER_KEY).decode())
    url = f"{node_red.address}/tocsin"
    soar = destination("soar", url, retry_schedule=["10ms"])
    stranger = destination("stranger", url, retry_schedule=["10ms"])
    return soar, stranger.replace('"secret"', '"another-secret"')


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def operator(tmp_path_factory, migrated_file) -> AsyncIterator[Operator]:
    """Of a Tocsin and a Node-RED that run, each with what it has to know of the other."""
    if reason := why_not():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("tocsin")
    database = URL.create("sqlite", database=str(folder / "tocsin.db"))
    shutil.copy(migrated_file, folder / "tocsin.db")
    node_red = NodeRed(tmp_path_factory.mktemp("node-red"))
    service = ForkedService(folder, database, *destinations(node_red, folder))
    service.environment |= {"TOCSIN_RATE_LIMIT": "60000", "TOCSIN_RATE_BURST": "6000"}
    async with AsyncExitStack() as running:
        running.push_async_callback(service.stop)
        await service.start()
        _, token, _ = await service.command("admin", "token")
        headers = {"Authorization": f"Bearer {token.strip()}"}
        api = await running.enter_async_context(aiohttp.ClientSession(service.url, headers=headers))
        operator = Operator(service, node_red, api)
        await operator.introduce(SCOPES)
        await running.enter_async_context(node_red)
        yield operator


async def test_an_incident_is_investigated_as_the_flows_own_client(operator):
    number = operator.raise_alert()
    delivery = await operator.delivery(number, to="soar", state="delivered")
    [attempt] = delivery["attempts"]
    answer = json.loads(attempt["response"])
    assert (attempt["status"], answer["incident_number"]) == (200, number)
    session = await operator.investigation(answer["session_id"])
    assert session["query"] == f"investigate incident {number}"
    assert session["created_by"] == operator.client_id


async def test_an_event_that_is_sent_again_is_acted_on_once(operator):
    number = operator.raise_alert()
    delivery = await operator.delivery(number, to="soar", state="delivered")
    await operator.admin("POST", f"deliveries/{delivery['id']}/replay")
    again = await operator.delivery(number, to="soar", state="delivered", attempts=2)
    assert [attempt["status"] for attempt in again["attempts"]] == [200, 200]
    assert json.loads(again["attempts"][1]["response"]) == {"repeated": True}
    assert await operator.queries(number) == 1


async def test_a_flow_that_has_forgotten_all_starts_nothing_twice(operator):
    number = operator.raise_alert()
    delivery = await operator.delivery(number, to="soar", state="delivered")
    await operator.restart_node_red()
    await operator.admin("POST", f"deliveries/{delivery['id']}/replay")
    again = await operator.delivery(number, to="soar", state="delivered", attempts=2)
    assert again["attempts"][1]["response"] == delivery["attempts"][0]["response"]
    assert await operator.queries(number) == 1


async def test_two_at_once_of_one_event_are_acted_on_once(operator):
    number = await operator.known_incident()
    body = alert(number)
    sent = [operator.post(body, signed(body, KEY, webhook_id="evt_at_once")) for _ in range(5)]
    answers = await asyncio.gather(*sent)
    assert ["session_id" in answer for _, answer in answers].count(True) == 1
    assert {status for status, answer in answers if "failed" in answer} <= {503}
    assert await operator.queries(number) == 2


async def test_another_secret_is_refused_and_the_delivery_says_so(operator):
    delivery = await operator.delivery(operator.raise_alert(), to="stranger", state="dead")
    assert [attempt["status"] for attempt in delivery["attempts"]] == [401, 401]
    answer = json.loads(delivery["attempts"][0]["response"])
    assert answer == {"refused": "the signature is wrong"}


async def test_an_event_that_could_not_be_acted_on_is_taken_when_it_comes_again(operator):
    number = operator.next_number
    body = alert(number)
    headers = signed(body, KEY, webhook_id="evt_early")
    status, answer = await operator.post(body, headers)
    assert (status, answer["failed"][-12:]) == (503, "returned 404")
    assert await operator.known_incident() == number
    status, answer = await operator.post(body, headers)
    assert (status, answer["incident_number"]) == (200, number)


async def test_a_token_that_was_revoked_is_replaced(operator):
    await operator.known_incident()
    await operator.admin("POST", f"api-clients/{operator.client_id}/revoke-tokens")
    delivery = await operator.delivery(operator.raise_alert(), to="soar", state="delivered")
    assert len(delivery["attempts"]) == 1


async def test_a_test_of_the_destination_goes_all_the_way_and_starts_nothing(operator):
    result = await operator.admin("POST", "destinations/soar/test", {})
    assert (result["outcome"], json.loads(result["response"])) == ("delivered", {"test": True})
    assert await operator.queries(0) == 0


async def test_events_of_other_kinds_are_taken_without_doing_anything(operator):
    body = NOTHING_TO_DO
    for headers in (signed(body, KEY), signed(body, ANOTHER_KEY, KEY)):
        assert await operator.post(body, headers) == (204, None)


async def test_what_is_not_to_be_trusted_is_refused(operator):
    body, now = NOTHING_TO_DO, time.time()
    good = signed(body, KEY)
    for sent, headers, reason in [
        (body, {}, "the message is not signed"),
        (body, signed(body), "the message is not signed"),
        (body + b" ", good, "the signature is wrong"),
        (body, good | {"webhook-id": "evt_2"}, "the signature is wrong"),
        (body, good | {"webhook-signature": "v1 v1, ,"}, "the signature is wrong"),
        (
            body,
            good | {"webhook-signature": good["webhook-signature"][1:]},
            "the signature is wrong",
        ),
        (body, good | {"webhook-timestamp": "soon"}, "the message is too old"),
        (body, signed(body, KEY, moment=now - 310), "the message is too old"),
        (body, signed(body, KEY, moment=now + 310), "the message is too old"),
    ]:
        status, answer = await operator.post(sent, headers)
        assert (status, answer["refused"][: len(reason)]) == (401, reason)


async def test_a_body_that_node_red_has_parsed_is_refused(operator):
    status, answer = await operator.post(NOTHING_TO_DO, signed(NOTHING_TO_DO, KEY), "/TOCSIN")
    assert (status, answer["refused"]) == (401, "the raw request body is not available")


@pytest.mark.parametrize("key", [b"", KEY])
@pytest.mark.full
async def test_without_a_secret_nobody_is_let_in(operator, key):
    answer = await operator.post(NOTHING_TO_DO, signed(NOTHING_TO_DO, key), WITHOUT_SECRET)
    assert answer == (500, {"refused": "TOCSIN_WEBHOOK_SECRET is not set"})
