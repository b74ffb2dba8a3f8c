"""A SIEM's HTTP API: signing in when needed, failures told apart, nothing taken for an answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from aiohttp import web

from tocsin import Api, ApiSettings, Broken, CredentialsRefused, Grant, Refused, TryLater
from tocsin.testing import ErrorResponse, Fault, Siem, Simulator, loopback_client, make_tools

THINGS = "/things"


class Vendor(Simulator):
    """Signs in at /sign-in; /things is what there is."""

    open_paths = ("/sign-in",)

    def routes(self):
        return [
            web.post("/sign-in", self.sign_in),
            web.get(THINGS, self.things),
            web.post(THINGS, self.echo),
            web.get("/moved", self.moved),
        ]

    def render(self, case):
        return {}

    async def sign_in(self, request):
        return self.json({"token": self.begin_session()})

    async def things(self, request):
        if "bad" in request.query:
            raise ErrorResponse(422, "there is no such thing")
        return self.json({"query": {name: request.query.getall(name) for name in request.query}})

    async def echo(self, request):
        return self.json({"body": await request.text(), "type": request.content_type})

    async def moved(self, request):
        raise ErrorResponse(302, "elsewhere", {"Location": "https://elsewhere.example.com/"})

    def count(self, path: str) -> int:
        return sum(asked.path == path for asked in self.requests)


class Client:
    """The API as a provider has it, with a sign-in of its own."""

    def __init__(self, vendor: Vendor, http, clock) -> None:
        settings = ApiSettings(url=vendor.url, timeout="500ms")
        self.api = Api(make_tools(http, clock=clock), settings, sign_in=self.sign_in)
        self.clock = clock
        self.lasts: timedelta | None = timedelta(hours=1)

    async def sign_in(self) -> Grant:
        answer = await self.api.request("POST", "/sign-in", signed=False)
        ends = self.clock.now() + self.lasts if self.lasts else None
        return Grant(f"Bearer {answer.json['token']}", ends)


@pytest.fixture
async def vendor(clock) -> AsyncIterator[Vendor]:
    async with Vendor(Siem(clock)) as vendor:
        yield vendor


@pytest.fixture
async def client(vendor, clock) -> AsyncIterator[Client]:
    http = loopback_client()
    yield Client(vendor, http, clock)
    await http.close()


async def test_one_sign_in_serves_many_requests(client, vendor):
    for _ in range(3):
        await client.api.get(THINGS)
    assert vendor.count("/sign-in") == 1


async def test_those_who_ask_at_once_share_one_sign_in(client, vendor):
    await asyncio.gather(*(client.api.get(THINGS) for _ in range(5)))
    assert vendor.count("/sign-in") == 1


async def test_a_grant_is_renewed_shortly_before_it_ends(client, vendor, clock):
    await client.api.get(THINGS)
    clock.advance(minutes=58)
    await client.api.get(THINGS)
    clock.advance(seconds=61)
    await client.api.get(THINGS)
    assert vendor.count("/sign-in") == 2


async def test_a_session_that_ended_early_is_renewed_within_the_request(client, vendor):
    await client.api.get(THINGS)
    vendor.fail(Fault.REVOKED)
    await client.api.get(THINGS)
    assert (vendor.count("/sign-in"), vendor.count(THINGS)) == (2, 3)


async def test_a_grant_without_an_end_is_good_until_it_is_refused(client, vendor, clock):
    client.lasts = None
    await client.api.get(THINGS)
    clock.advance(minutes=59)
    await client.api.get(THINGS)
    clock.advance(minutes=2)  # now the vendor has ended it
    await client.api.get(THINGS)
    assert vendor.count("/sign-in") == 2


async def test_a_new_session_that_is_refused_as_well_is_not_tried_for_ever(client, vendor):
    vendor.fail(Fault.UNAUTHORIZED, times=2, where=THINGS)
    with pytest.raises(CredentialsRefused):
        await client.api.get(THINGS)
    assert vendor.count("/sign-in") == 2


async def test_a_sign_in_that_fails_is_tried_again_by_the_next_request(client, vendor):
    vendor.fail(Fault.UNAVAILABLE, where="/sign-in")
    with pytest.raises(TryLater):
        await client.api.get(THINGS)
    await client.api.get(THINGS)


FAILURES = {
    Fault.THROTTLED: TryLater,
    Fault.THROTTLED_UNTIL: TryLater,
    Fault.UNAVAILABLE: TryLater,
    Fault.BAD_GATEWAY: TryLater,
    Fault.CUT: TryLater,
    Fault.SLOW: TryLater,
    Fault.ERROR: Broken,
    Fault.LOGIN_PAGE: Broken,
    Fault.TRUNCATED: Broken,
    Fault.FORBIDDEN: CredentialsRefused,
}


@pytest.mark.parametrize(("fault", "error"), FAILURES.items(), ids=str)
async def test_each_failure_is_told_apart_and_passes(client, vendor, fault, error):
    await client.api.get(THINGS)
    vendor.fail(fault, where=THINGS)
    with pytest.raises(error):
        await client.api.get(THINGS)
    await client.api.get(THINGS)


@pytest.mark.parametrize("fault", [Fault.THROTTLED, Fault.THROTTLED_UNTIL, Fault.UNAVAILABLE])
@pytest.mark.parametrize("skew", [timedelta(minutes=-7), timedelta(0), timedelta(minutes=7)])
async def test_the_delay_is_what_was_asked_for_whatever_time_the_server_has(
    client, vendor, fault, skew
):
    vendor.siem.skew = skew
    vendor.retry_after = timedelta(seconds=90)
    vendor.fail(fault, where=THINGS)
    with pytest.raises(TryLater) as caught:
        await client.api.get(THINGS)
    assert (caught.value.after, caught.value.throttled) == (timedelta(seconds=90), True)


async def test_a_mistake_of_the_request_is_refused_with_what_was_answered(client):
    with pytest.raises(Refused, match="no such thing") as caught:
        await client.api.get(THINGS, bad="yes")
    assert caught.value.status == 422


async def test_a_redirect_is_not_followed(client, vendor):
    with pytest.raises(Refused, match="elsewhere"):
        await client.api.get("/moved")


async def test_the_query_is_encoded_and_holds_no_member_without_a_value(client):
    answer = await client.api.get(THINGS, name="a b&c", many=["x", "y"], missing=None)
    assert answer.json == {"query": {"name": ["a b&c"], "many": ["x", "y"]}}


async def test_json_and_forms_are_sent_as_what_they_are(client):
    sent = await client.api.request("POST", THINGS, json={"a": 1})
    assert sent.json == {"body": '{"a":1}', "type": "application/json"}
    sent = await client.api.request("POST", THINGS, form={"a": "b c"})
    assert sent.json == {"body": "a=b+c", "type": "application/x-www-form-urlencoded"}


async def test_an_answer_tells_what_time_the_server_has(client, vendor, clock):
    vendor.siem.skew = timedelta(minutes=5)
    answer = await client.api.get(THINGS)
    assert answer.server_time == clock.now() + timedelta(minutes=5)


async def test_a_server_that_is_away_is_tried_later(client, vendor):
    await client.api.get(THINGS)
    await vendor.hang_up()
    with pytest.raises(TryLater):
        await client.api.get(THINGS)
    await vendor.listen()
    await client.api.get(THINGS)


@pytest.mark.parametrize(
    "path",
    [
        ".evil.example/x",
        "@evil.example/x",
        "https://evil.example/x",
        "http://127.0.0.1:1/x",
        "/v1/alerts/../../admin",
        "/v1/alerts/%2e%2e/admin",
    ],
)
async def test_the_grant_is_sent_nowhere_else(client, vendor, path):
    with pytest.raises(Broken, match="is outside"):
        await client.api.get(path)
    assert vendor.requests == []


async def test_a_link_to_the_next_page_may_be_a_whole_address(client, vendor):
    answer = await client.api.get(f"{vendor.url}{THINGS}")
    assert answer.status == 200
