"""What becomes of a delivery when the network, or what is at its other end, does its worst."""

# ruff: noqa: F811 - fixtures are found by their names
from __future__ import annotations

import asyncio
import gzip
import ssl
import tracemalloc
from datetime import UTC, datetime, timedelta

import pytest
from tests.core.net.conftest import (  # noqa: F401 - fixtures
    authority,
    connects,
    dns,
    hanging,
    stranger,
)

from .rogue import (
    answer,
    black_hole,
    drip,
    receiving,
    say,
    say_and_close,
    say_and_reset,
    say_for_ever,
    silence,
)
from .station import open_station

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
HEAD = b"HTTP/1.1 200 OK\r\n"
HALF = HEAD + b"Content-Length: 100\r\n\r\nthe first half of it"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
MANY = 65_536
BOMB = gzip.compress(bytes(64 * 2**20), compresslevel=1)


@pytest.fixture
def clock(clock):
    """Stands still at a time that the libraries which verify accept."""
    clock.advance(seconds=(datetime.now(UTC) - clock.now()).total_seconds())
    return clock


@pytest.fixture
async def rogue():
    async with receiving(answer(204)) as rogue:
        yield rogue


@pytest.fixture
async def station(tmp_path, database, clock):
    async with open_station(tmp_path, database, clock) as station:
        yield station


@pytest.fixture
def retry(station, clock):
    """Let the time of the next attempt come, and return when it has delivered everything."""

    async def retry():
        clock.advance(seconds=6)
        station.wake()
        await station.until("delivered")

    return retry


async def reason_of_first_attempt(station) -> str:
    """Have an event attempted once, in vain, and return why."""
    await station.emit()
    await station.until_attempted()
    [delivery] = await station.deliveries()
    assert (delivery["state"], delivery["attempts"]) == ("pending", 1)
    return delivery["reason"].partition(": ")[2]


# --- connections


async def test_what_is_refused_arrives_when_the_receiver_is_back(station, rogue, retry):
    await station.add("soc", rogue.url())
    await rogue.stop()
    assert await reason_of_first_attempt(station) == "cannot connect"
    await rogue.start()
    await retry()
    assert len(rogue.got) == 1


async def test_a_black_hole_costs_no_more_than_the_time_out(station):
    with black_hole() as url:
        await station.add("soc", url, timeout="250ms")
        assert await reason_of_first_attempt(station) == "timeout"
    [attempt] = await station.attempts()
    assert attempt["outcome"] == "later"


FAILURES = {
    "nothing": (say_and_close(b""), "connection reset"),
    "reset": (say_and_reset(b""), "connection reset"),
    "reset in the head": (say_and_reset(HEAD), "connection reset"),
    "closed in the head": (say_and_close(HEAD), "connection reset"),
    "reset in the body": (say_and_reset(HALF), "connection reset"),
    "closed in the body": (say_and_close(HALF), "connection reset"),
    "closed in a chunk": (say_and_close(CHUNKED + b"5\r\nab"), "connection reset"),
    "closed between chunks": (say_and_close(CHUNKED + b"2\r\nab\r\n"), "connection reset"),
    "silent": (silence, "timeout"),
    "silent after the head": (say(HEAD + b"Content-Length: 5\r\n\r\n"), "timeout"),
    "slow head": (drip(HEAD + b"X-A: b"), "timeout"),
    "slow body": (drip(HEAD + b"Content-Length: 10000\r\n\r\n", 0.001), "timeout"),
    "slow reason": (drip(b"HTTP/1.1 200 O"), "timeout"),
    "only ever 100": (say(b"HTTP/1.1 100 Continue\r\n\r\n" * 5), "timeout"),
    "a banner": (say(b"SSH-2.0-OpenSSH_9.9\r\n"), "the response is not HTTP"),
    "mail": (say(b"220 mail.example ESMTP\r\n"), "the response is not HTTP"),
    "TLS": (say(b"\x15\x03\x01\x00\x02\x02\x46"), "the response is not HTTP"),
    "HTTP/0.9": (say_and_close(b"<html>yes</html>"), "the response is not HTTP"),
    "HTTP/2": (
        say(b"\x00\x00\x12\x04\x00\x00\x00\x00\x00" + bytes(18)),
        "the response is not HTTP",
    ),
    "no status": (say(b"HTTP/1.1 OK\r\n\r\n"), "the response is not HTTP"),
    "a negative length": (say(HEAD + b"Content-Length: -1\r\n\r\n"), "the response is not HTTP"),
    "two lengths": (
        say(HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab"),
        "the response is not HTTP",
    ),
    "length and chunks": (
        say(HEAD + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        "the response is not HTTP",
    ),
    "no such chunk": (say(CHUNKED + b"yes\r\n"), "the response is not HTTP"),
    "a name with a space": (say(HEAD + b"X A: b\r\n\r\n"), "the response is not HTTP"),
    "NUL in a value": (say(HEAD + b"X-A: \0\r\n\r\n"), "the response is not HTTP"),
}


@pytest.mark.parametrize("name", FAILURES)
async def test_what_is_not_a_whole_answer_is_tried_again(station, rogue, retry, name):
    rogue.behave, reason = FAILURES[name]
    await station.add("soc", rogue.url(), timeout="250ms")
    assert await reason_of_first_attempt(station) == reason
    rogue.behave = answer(204)
    await retry()
    assert len(rogue.ids) == 2
    assert len(set(rogue.ids)) == 1, "the id stays"


async def test_interim_answers_are_passed_over(station, rogue):
    interim = b"HTTP/1.1 100 Continue\r\n\r\n" + b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n"
    rogue.behave = say(interim * 10 + b"HTTP/1.1 204 No Content\r\n\r\n")
    await station.add("soc", rogue.url())
    await station.emit()
    await station.until("delivered")


async def test_an_offer_of_another_protocol_is_no_receipt(station, rogue):
    offer = b"Upgrade: x\r\nConnection: upgrade\r\n\r\n"
    rogue.behave = say(b"HTTP/1.1 101 Switching Protocols\r\n" + offer)
    await station.add("soc", rogue.url(), timeout="250ms")
    await station.emit()
    await station.until_attempted()
    [delivery] = await station.deliveries()
    assert delivery["state"] == "pending"


async def test_a_connection_that_the_receiver_closes_between_two_requests_is_not_used_again(
    station, rogue
):
    rogue.behave = say_and_close(b"HTTP/1.1 204 No Content\r\nConnection: keep-alive\r\n\r\n")
    await station.add("soc", rogue.url())
    for expected in range(1, 6):
        await station.emit()
        await station.until_attempted(expected)
    await station.until("delivered")
    assert [attempt["number"] for attempt in await station.attempts()] == [1] * 5


@pytest.mark.parametrize("pause", [0, 0.02], ids=["at once", "later"])
async def test_an_answer_that_nobody_asked_for_is_the_receipt_of_nothing(station, rogue, pause):
    async def twice(reader, writer):
        await answer(503)(reader, writer)
        await asyncio.sleep(pause)
        await answer(200)(reader, writer)

    rogue.behave = twice
    await station.add("soc", rogue.url(), concurrency=1)
    for expected in range(1, 6):
        await station.emit()
        await station.until_attempted(expected)
        await asyncio.sleep(2 * pause)
    assert [attempt["status"] for attempt in await station.attempts()] == [503] * 5


# --- without an end


@pytest.fixture
def memory():
    """The most memory that was in use at once, beyond what is now, in MiB."""
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    yield lambda: (tracemalloc.get_traced_memory()[1] - before) / 2**20
    tracemalloc.stop()


ENDLESS_BODIES = {
    "until closed": say_for_ever(HEAD + b"\r\n", b"x" * MANY),
    "of a length": say_for_ever(HEAD + b"Content-Length: 999999999999\r\n\r\n", b"x" * MANY),
    "in chunks": say_for_ever(CHUNKED, b"ffff\r\n" + b"x" * 0xFFFF + b"\r\n"),
    "in small chunks": say_for_ever(CHUNKED, b"1\r\nx\r\n" * 5_000),
    "compressed": answer(200, "Content-Encoding: gzip", body=BOMB),
}


@pytest.mark.parametrize("name", ENDLESS_BODIES)
async def test_of_a_body_without_end_little_is_read(station, rogue, memory, name):
    rogue.behave = ENDLESS_BODIES[name]
    await station.add("soc", rogue.url(), timeout="30s")
    await station.emit(8)
    await station.until("delivered", seconds=60)
    responses = [attempt["response"] for attempt in await station.attempts()]
    assert {len(response) for response in responses} == {16_384}
    assert all(BOMB.startswith(response) or set(response) == set(b"x") for response in responses), (
        "as it came"
    )
    assert memory() < 16


ENDLESS_HEADS = {
    "fields": say_for_ever(HEAD, b"X-A: b\r\n" * 1_000),
    "one value": say_for_ever(HEAD + b"X-A: ", b"b" * MANY),
    "one name": say_for_ever(HEAD, b"X" * MANY),
    "the reason": say_for_ever(b"HTTP/1.1 200 ", b"O" * MANY),
    "the version": say_for_ever(b"HTTP/1.", b"1" * MANY),
    "no line": say_for_ever(b"", b"\r\n" * 1_000),
    "100": say_for_ever(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
    "103": say_for_ever(b"", b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n" * 100),
    "an extension": say_for_ever(CHUNKED + b"1;", b"a" * MANY),
    "a chunk's length": say_for_ever(CHUNKED, b"0" * MANY),
    "trailers": say_for_ever(CHUNKED + b"1\r\na\r\n0\r\n", b"X-A: b\r\n" * 1_000),
    "one trailer": say_for_ever(CHUNKED + b"1\r\na\r\n0\r\nX-A: ", b"b" * MANY),
}


@pytest.mark.parametrize("name", ENDLESS_HEADS)
async def test_whatever_else_has_no_end_ends_with_the_time_out(station, rogue, memory, retry, name):
    rogue.behave = ENDLESS_HEADS[name]
    await station.add("soc", rogue.url(), timeout="250ms")
    await reason_of_first_attempt(station)
    assert memory() < 16
    rogue.behave = answer(204)
    await retry()


# --- names


async def test_a_name_that_is_not_found_is_looked_up_again(station, rogue, dns, retry):
    dns["soc.example"] = [[], ["127.0.0.1"]]
    await station.add("soc", rogue.url("soc.example"))
    assert await reason_of_first_attempt(station) == "name not found"
    await retry()
    assert len(rogue.got) == 1


async def test_a_look_up_that_hangs_costs_no_more_than_the_time_out(
    station, rogue, dns, hanging, retry
):
    dns["soc.example"] = [hanging, ["127.0.0.1"]]
    await station.add("soc", rogue.url("soc.example"), timeout="250ms")
    assert await reason_of_first_attempt(station) == "timeout"
    hanging.over.set()
    await retry()
    assert len(rogue.got) == 1


async def test_a_look_up_that_hangs_holds_up_no_other_destination(station, rogue, dns, hanging):
    dns["slow.example"] = [hanging]
    dns["soc.example"] = [["127.0.0.1"]]
    await station.add("slow", rogue.url("slow.example"), concurrency=64)
    await station.add("soc", rogue.url("soc.example"))
    await station.emit(100)
    await station.until("delivered")
    assert len(rogue.got) == 100
    assert not await station.attempts("slow")
    hanging.over.set()


async def test_an_address_that_does_not_answer_is_passed_over_for_one_that_does(
    station, rogue, dns
):
    dns["soc.example"] = [["127.0.0.2", "127.0.0.1"]]  # nobody listens at the first
    await station.add("soc", rogue.url("soc.example"))
    await station.emit()
    await station.until("delivered")


@pytest.mark.parametrize(
    "rebound", [["169.254.169.254"], ["10.0.0.1"], ["127.0.0.1", "::1"], ["::ffff:10.0.0.1"]]
)
async def test_a_name_that_leads_to_a_forbidden_address_by_now_is_not_followed_there(
    station, rogue, dns, connects, rebound
):
    dns["soc.example"] = [["127.0.0.1"], rebound]
    rogue.behave = say_and_close(b"HTTP/1.1 503 Later\r\nConnection: close\r\n\r\n")
    await station.add("soc", rogue.url("soc.example"))
    await station.emit()
    await station.until_attempted(1)
    station.clock.advance(seconds=6)
    station.wake()
    await station.until("on_hold")
    [delivery] = await station.deliveries()
    assert "soc.example is not allowed" in delivery["reason"]
    assert connects == [rogue.address]
    assert (await station.destination())["state"] == "active"


async def test_a_name_is_looked_up_for_each_connection_and_never_remembered(station, rogue, dns):
    dns["soc.example"] = [["127.0.0.1"]] * 3 + [["10.0.0.1"]]
    rogue.behave = answer(204, "Connection: close")
    await station.add("soc", rogue.url("soc.example"))
    for expected in range(1, 5):
        await station.emit()
        await station.until_attempted(expected)
    states = [delivery["state"] for delivery in await station.deliveries()]
    assert states == ["delivered"] * 3 + ["on_hold"]


# --- certificates


async def reason_over_tls(station, certificate: str, dns, **settings) -> str:
    """Have an event attempted at a server with that certificate, and return why in vain."""
    dns["soc.example"] = [["127.0.0.1"]]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    async with receiving(answer(204), context) as server:
        await station.add("soc", server.url("soc.example"), **settings)
        reason = await reason_of_first_attempt(station)
        assert server.got == [], "nothing was told to whom nobody vouches for"
    return reason


@pytest.mark.parametrize("trusts", [False, True], ids=["the system's", "another"])
async def test_nobody_is_told_whom_no_trusted_authority_vouches_for(
    station, authority, stranger, dns, trusts
):
    settings = {"ca_file": stranger.file} if trusts else {}
    reason = await reason_over_tls(station, authority.issue("soc.example"), dns, **settings)
    assert reason.startswith("TLS certificate not valid (")


async def test_nobody_is_told_who_vouches_for_himself(station, authority, dns):
    reason = await reason_over_tls(station, authority.self_signed("soc.example"), dns)
    assert reason == "TLS certificate not valid (self-signed certificate)"


async def test_nobody_is_told_whose_certificate_has_expired(station, authority, dns):
    expired = authority.issue("soc.example", age=timedelta(days=2))
    reason = await reason_over_tls(station, expired, dns, ca_file=authority.file)
    assert reason == "TLS certificate not valid (certificate has expired)"


async def test_nobody_is_told_whose_certificate_is_not_valid_yet(station, authority, dns):
    early = authority.issue("soc.example", age=timedelta(days=-2))
    reason = await reason_over_tls(station, early, dns, ca_file=authority.file)
    assert reason == "TLS certificate not valid (certificate is not yet valid)"


async def test_nobody_is_told_whose_certificate_is_anothers(station, authority, dns):
    others = authority.issue("other.example", "127.0.0.1")
    reason = await reason_over_tls(station, others, dns, ca_file=authority.file)
    assert "certificate is not valid for 'soc.example'" in reason


async def test_what_waited_for_a_certificate_arrives_once_it_is_renewed(
    station, authority, dns, retry
):
    dns["soc.example"] = [["127.0.0.1"]]
    context = authority.server("soc.example", age=timedelta(days=2))
    async with receiving(answer(204), context) as server:
        await station.add("soc", server.url("soc.example"), ca_file=authority.file)
        await reason_of_first_attempt(station)
        context.load_cert_chain(authority.issue("soc.example"))
        await retry()
        assert len(server.got) == 1


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (b"HTTP/1.1 204 No Content\r\n\r\n", "TLS handshake failed"),
        (b"\x15\x03\x03\x00\x02\x02\x28", "TLS handshake failed"),
        (b"", "timeout"),
    ],
    ids=["plain", "alert", "silent"],
)
async def test_what_is_no_handshake_is_tried_again(station, rogue, words, reason):
    rogue.greet = say(words)
    url = rogue.url().replace("http:", "https:")
    await station.add("soc", url, timeout="250ms")
    assert (await reason_of_first_attempt(station)).startswith(reason)
