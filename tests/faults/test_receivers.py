"""What becomes of a delivery and its destination, by what the receiver answers."""

# ruff: noqa: F811 - fixtures are found by their names
from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from time import asctime

import pytest
import standardwebhooks.webhooks
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.core.net.conftest import connects  # noqa: F401 - a fixture

from ports import free_port

from .rogue import answer, receiving
from .station import open_station

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
DAY = timedelta(days=1)
STEP = timedelta(seconds=5)
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


class Noon(datetime):
    """What the time is for the library that verifies, which asks the machine."""

    @classmethod
    def now(cls, tz=None):
        return NOW.astimezone(tz)


@pytest.fixture(autouse=True)
def at_noon(monkeypatch):
    monkeypatch.setattr(standardwebhooks.webhooks, "datetime", Noon)


@pytest.fixture
async def rogue():
    async with receiving(answer(204)) as rogue:
        yield rogue


@pytest.fixture
async def station(tmp_path, database, clock, rogue):
    async with open_station(tmp_path, database, clock) as station:
        await station.add("soc", rogue.url())
        yield station


@pytest.fixture
def try_once(station, rogue):
    """Have one event answered in this way, and return its delivery, attempt and destination."""

    async def try_once(behaviour):
        rogue.behave = behaviour
        [event] = await station.emit()
        await station.until_attempted()
        await station.finish()  # what the answer says of the destination is stored by then
        [delivery], [attempt] = await station.deliveries(), await station.attempts()
        assert rogue.ids == [event]
        return delivery, attempt, await station.destination()

    return try_once


def is_spread(delivery, wait: timedelta) -> bool:
    """Whether it is due after this wait, or so much later as is added to spread load."""
    return NOW + wait <= delivery["due_at"] <= NOW + wait * 1.1


# --- statuses


@pytest.mark.parametrize("status", [200, 202, 204, 205, 299])
async def test_every_2xx_is_a_receipt(try_once, status):
    delivery, attempt, destination = await try_once(answer(status))
    assert (delivery["state"], attempt["status"]) == ("delivered", status)
    assert (destination["state"], destination["failures"]) == ("active", 0)


async def test_a_2xx_without_the_proof_of_the_contract_is_tried_again(station, rogue):
    await station.add("n8n", rogue.url(), template="n8n")
    rogue.behave = answer(200)  # as n8n does when a workflow fails
    await station.emit()
    await station.until_attempted(destination="n8n")
    await station.finish()
    [delivery], [attempt] = await station.deliveries("n8n"), await station.attempts("n8n")
    assert (delivery["state"], attempt["outcome"], attempt["status"]) == ("pending", "later", 200)
    assert "did not confirm that it received the event" in attempt["reason"]
    assert (await station.destination("n8n"))["failures"] == 1


async def test_what_waits_for_a_receiver_that_was_away_is_due_once_it_is_back(station, rogue):
    port = free_port()
    await station.add("away", f"http://127.0.0.1:{port}/")
    await station.emit(3)
    await station.until_attempted(3, destination="away")
    waiting = await station.deliveries("away")
    assert all("cannot connect" in row["reason"] for row in waiting)
    assert all(row["due_at"] >= NOW + STEP for row in waiting)

    async def accept(_request):
        return web.Response(status=204)

    app = web.Application()
    app.router.add_post("/", accept)
    async with TestServer(app, port=port):
        await station.emit()  # its success ends the outage; no time passes
        await station.until("delivered", destination="away")


async def test_what_failed_otherwise_keeps_its_time_when_another_delivery_succeeds(station, rogue):
    rogue.behave = answer(500)
    await station.emit()
    await station.until_attempted()
    rogue.behave = answer(204)
    await station.emit()
    await station.until_attempted(2)
    await station.finish()
    first, second = await station.deliveries()
    assert (first["state"], second["state"]) == ("pending", "delivered")
    assert is_spread(first, STEP)


NOT_ACCEPTED = (300, 304, 400, 401, 403, 404, 408, 409, 413, 425, 451, 500, 501, 503, 599, 999)


@pytest.mark.parametrize("status", NOT_ACCEPTED)
async def test_every_other_status_is_tried_again_on_the_schedule(try_once, status):
    delivery, attempt, destination = await try_once(answer(status))
    assert (delivery["state"], attempt["outcome"]) == ("pending", "later")
    assert attempt["status"] == status
    assert is_spread(delivery, STEP)
    assert (destination["state"], destination["failures"]) == ("active", 1)
    assert destination["held_until"] is None


@pytest.mark.parametrize("status", [429, 502, 504])
async def test_a_receiver_with_too_much_to_do_is_left_alone(try_once, status):
    delivery, _, destination = await try_once(answer(status))
    assert (delivery["state"], destination["state"]) == ("pending", "active")
    assert is_spread(delivery, STEP)
    assert destination["held_until"] == NOW + timedelta(seconds=1)


async def test_gone_disables_the_destination_and_keeps_the_event(try_once):
    delivery, attempt, destination = await try_once(answer(410, "Retry-After: 60", body=b"bye"))
    assert (delivery["state"], attempt["response"]) == ("on_hold", b"bye")
    assert (destination["state"], destination["reason"]) == ("disabled", "gone")


@pytest.mark.parametrize(
    ("status", "forbidden"),
    [
        (301, "http://169.254.169.254/latest/meta-data/"),
        (302, "https://10.0.0.1/"),
        (303, "//[::1]/"),
        (307, "http://127.0.0.1:22/"),
        (308, "file:///etc/passwd"),
    ],
)
async def test_a_redirect_is_a_failure_and_nobody_connects_to_where_it_leads(
    try_once, rogue, connects, status, forbidden
):
    delivery, attempt, _ = await try_once(answer(status, f"Location: {forbidden}"))
    assert (delivery["state"], attempt["status"]) == ("pending", status)
    assert connects == [rogue.address]


@pytest.mark.parametrize("field", ["Location: {}", "Refresh: 0; url={}", "Content-Location: {}"])
async def test_not_even_a_redirect_to_an_address_that_may_be_reached_is_followed(
    try_once, rogue, field
):
    async with receiving(answer(204)) as other:
        delivery, _, _ = await try_once(answer(307, field.format(other.url())))
        assert (delivery["state"], other.connections) == ("pending", 0)


# --- Retry-After


def dates(moment: datetime) -> Iterator[str]:
    """The three forms of RFC 9110 section 5.6.7."""
    yield format_datetime(moment, usegmt=True)
    yield f"{moment:%A, %d-%b-%y %H:%M:%S} GMT"
    yield asctime(moment.timetuple())


FORMS = {
    "120": timedelta(minutes=2),
    "007": timedelta(seconds=7),
    "90.5": timedelta(seconds=90.5),
    "1": STEP,  # the schedule's own step is longer
    "0": STEP,
    "0.0": STEP,
    "-5": STEP,
    "+60": STEP,
    "1e3": STEP,
    "inf": STEP,
    "nan": STEP,
    "0x10": STEP,
    "٦٠": STEP,
    "soon": STEP,
    "": STEP,
    "120, 60": STEP,
    "PT5M": STEP,
    "2030-01-01T00:00:00Z": STEP,
    "Thu, 99 Foo 2026 99:99:99 GMT": STEP,
    "86399": timedelta(seconds=86_399),
    "86401": DAY,
    "9" * 400: DAY,
    "9" * 20 + ".9": DAY,
    **dict.fromkeys(dates(NOW + timedelta(hours=2)), timedelta(hours=2)),
    **dict.fromkeys(dates(NOW - timedelta(hours=2)), STEP),
    **dict.fromkeys(dates(NOW + timedelta(days=365)), DAY),
    "Fri, 31 Dec 9999 23:59:59 GMT": DAY,
    "Fri, 31 Dec 9999 23:59:59 -2359": DAY,
    "Sat, 01 Jan 0001 00:00:00 +2359": STEP,
}


@pytest.mark.parametrize(("value", "wait"), FORMS.items(), ids=map(str, range(len(FORMS))))
async def test_a_wait_that_the_receiver_names_is_kept_as_far_as_it_is_believed(
    try_once, value, wait
):
    delivery, _, destination = await try_once(answer(503, f"Retry-After: {value}"))
    assert (delivery["state"], destination["state"]) == ("pending", "active")
    assert is_spread(delivery, wait)


async def test_of_several_waits_the_first_is_kept(try_once):
    several = ("Retry-After: 60", "Retry-After: 7200")
    delivery, _, _ = await try_once(answer(503, *several))
    assert is_spread(delivery, timedelta(minutes=1))


@pytest.mark.parametrize("status", [301, 400, 404, 429, 500])
async def test_every_failure_may_name_a_wait(try_once, status):
    delivery, _, _ = await try_once(answer(status, "Retry-After: 600"))
    assert is_spread(delivery, timedelta(minutes=10))


@pytest.mark.parametrize(
    ("value", "held"), [("600", timedelta(minutes=10)), ("7200", timedelta(hours=1))]
)
async def test_a_busy_receiver_is_left_alone_as_long_as_it_asks_but_for_an_hour_at_most(
    try_once, value, held
):
    delivery, _, destination = await try_once(answer(429, f"Retry-After: {value}"))
    assert destination["held_until"] == NOW + held
    assert is_spread(delivery, timedelta(seconds=int(value)))


# --- webhook-delivery


@pytest.mark.parametrize("status", [301, 400, 429, 500])
async def test_a_receiver_may_end_all_deliveries(try_once, status):
    wish = answer(status, "Webhook-Delivery: disable", "Retry-After: 60")
    delivery, _, destination = await try_once(wish)
    assert delivery["state"] == "on_hold"
    assert (destination["state"], destination["reason"]) == ("disabled", "gone")


@pytest.mark.parametrize("status", [301, 400, 429, 500])
async def test_a_receiver_may_end_the_retries_of_one_event(try_once, status):
    delivery, _, destination = await try_once(answer(status, "webhook-delivery: abort-message"))
    assert (delivery["state"], destination["state"]) == ("dead", "active")
    reason = f"the receiver returned {status}: it does not accept this event again"
    assert delivery["reason"] == reason


@pytest.mark.parametrize("value", ["", "stop", "disable, abort-message", "true"])
async def test_another_wish_is_no_wish(try_once, value):
    delivery, _, destination = await try_once(answer(400, f"webhook-delivery: {value}"))
    assert (delivery["state"], destination["state"]) == ("pending", "active")


# --- everything at once


async def test_when_the_schedule_is_used_up_the_event_is_dead_and_says_why(station, rogue, clock):
    await station.add("brief", rogue.url(), retry_schedule=["1s", "2s"])
    rogue.behave = answer(503, body=b"not today")
    await station.emit()
    for number in range(1, 4):
        await station.until_attempted(number, "brief")
        clock.advance(seconds=3)
        station.wake()
    await station.until("dead", destination="brief")
    [delivery] = await station.deliveries("brief")
    assert delivery["reason"] == "the receiver returned 503"
    assert [attempt["response"] for attempt in await station.attempts("brief")] == [
        b"not today"
    ] * 3


async def test_what_is_kept_of_an_answer_is_bounded(try_once):
    _, attempt, _ = await try_once(answer(500, body=b"\0\xff" * 50_000))
    assert attempt["response"] == b"\0\xff" * 8_192


@pytest.mark.parametrize("status", [429, 502, 504])
async def test_a_busy_receiver_is_sent_nothing_more_of_what_was_claimed_ahead(station, status):
    async with receiving(answer(status, "Retry-After: 60")) as busy:
        await station.add("busy", busy.url(), concurrency=1)
        await station.emit(8)
        await station.until_it_is_held("busy")
        await station.finish()
        assert len(busy.got) == 1
        assert sum(delivery["attempts"] for delivery in await station.deliveries("busy")) == 1
