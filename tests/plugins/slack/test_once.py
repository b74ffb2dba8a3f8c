"""Duplicate prevention: a bot that can read its messages posts each event once."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from datetime import timedelta

import pytest
from sqlalchemy import URL

from delivery_rows import NOW, add_delivery, add_destination
from tocsin import Broken, TryLater
from tocsin.delivery.queue.queue import DeliveryQueue
from tocsin.delivery.sending.attempts import AttemptRunner
from tocsin.store import open_database
from tocsin.testing import Fault

from .deliveries import NOON, body, completed, delivery, disabled, failed
from .simulator import CHANNEL, SCOPES

LOST = (Fault.LOST, Fault.CUT, Fault.TRUNCATED)
"""Faults after which a message was posted, but the response was lost."""
UNDONE = (
    Fault.BAD_GATEWAY,
    Fault.EMPTY,
    Fault.ERROR,
    Fault.LOGIN_PAGE,
    Fault.RESTARTED,
    Fault.SLOW,
    Fault.THROTTLED,
    Fault.UNAVAILABLE,
    Fault.UNEXPECTED,
)
PASSING = ("internal_error", "fatal_error", "service_unavailable", "ratelimited", "new_error")
METHODS = ("chat.postMessage", "chat.update", "conversations.history", "conversations.replies")


@pytest.fixture
def bring(make, clock):
    """Repeat attempts until the delivery succeeds, as the service does, and return the receipt."""

    async def bring(make_delivery, *, timeout="150ms", **members):
        tried_at = members.pop("tried_at", None)
        channel = make(timeout=timeout)
        for attempt in range(1, 10):
            begun = clock.now()
            try:
                return await channel.deliver(
                    make_delivery(attempt=attempt, tried_at=tried_at, **members)
                )
            except (TryLater, Broken):
                tried_at = begun
                clock.advance(seconds=31)
        raise AssertionError("it was never delivered")

    return bring


@pytest.fixture
def tell(bring):
    """Deliver three related events, two of them in one thread."""

    async def tell():
        first = await bring(failed, text="failed once")
        await bring(delivery, text="an incident")
        return await bring(disabled, text="disabled", remote_id=first.remote_id)

    return tell


def events(slack) -> Counter[str]:
    marks = (message["metadata"]["event_payload"]["event_id"] for message in slack.channel.messages)
    return Counter(marks)


def expect_once(slack, receipt) -> None:
    assert events(slack) == {"evt_1": 1, "evt_3": 1, "evt_4": 1}
    root = slack.channel.messages[0]
    assert root["text"] == "disabled"
    assert receipt.remote_id == f"{CHANNEL}/{root['ts']}"
    assert slack.faults_left == 0


@pytest.mark.parametrize("method", METHODS[:2])
@pytest.mark.parametrize("fault", [*LOST, *UNDONE, *PASSING])
async def test_a_step_that_fails_once(slack, tell, method, fault):
    slack.fail(fault, method)
    expect_once(slack, await tell())


async def test_a_post_that_slack_has_taken_and_calls_failed(slack, tell):
    slack.fail("internal_error", "chat.postMessage", done=True)
    expect_once(slack, await tell())


@pytest.mark.parametrize("method", METHODS[1:])
async def test_another_step_that_slack_has_taken_and_calls_failed(slack, tell, method):
    slack.fail("internal_error", method, done=True)
    for _ in range(3):  # so that there is something to look for
        slack.fail(Fault.LOST, "chat.postMessage")
    expect_once(slack, await tell())


@pytest.mark.parametrize("fault", [*LOST, *UNDONE, *PASSING])
async def test_a_search_that_fails_as_well(slack, tell, fault):
    for _ in range(2):
        slack.fail(Fault.LOST, "chat.postMessage")
        slack.fail(fault, "conversations.history")
    expect_once(slack, await tell())


@pytest.mark.parametrize("lost", LOST)
async def test_a_reply_that_is_lost_and_a_search_that_fails(slack, tell, bring, lost):
    first = await bring(failed, text="failed once")
    slack.fail(lost, "chat.postMessage")
    slack.fail("internal_error", "conversations.replies")
    await bring(disabled, remote_id=first.remote_id)
    assert events(slack) == {"evt_3": 1, "evt_4": 1}
    assert slack.faults_left == 0


async def test_everything_is_lost_twice_over(slack, tell):
    for _ in range(2):
        for method in METHODS[:2]:
            slack.fail(Fault.LOST, method)
    expect_once(slack, await tell())


@pytest.mark.parametrize("later", [False, True])
async def test_a_process_that_was_killed_before_it_recorded(make, slack, clock, later):
    first = await make().deliver(failed())
    told = disabled(remote_id=first.remote_id) if later else failed()
    if later:
        await make().deliver(told)
    begun = clock.now()
    clock.advance(seconds=2)
    members = {"tried_at": begun, "remote_id": told.remote_id}
    again = await make().deliver((disabled if later else failed)(**members))
    assert again.remote_id == first.remote_id
    assert set(events(slack).values()) == {1}


async def test_the_queue_says_so_when_a_node_died(make, slack, clock, tmp_path, migrated_file):
    path = tmp_path / "tocsin.db"
    shutil.copy(migrated_file, path)
    database = open_database(URL.create("sqlite", database=str(path)))
    try:
        await database.write(add_destination)
        await database.write(
            lambda c: add_delivery(c, "pending", tried=0, due_at=NOW - timedelta(minutes=1))
        )
        queue, attempts = DeliveryQueue(database), AttemptRunner(make(template="own"), _Own())
        for _ in range(2):
            [claimed] = await queue.claim("soc", 1, clock.now(), in_order=True)
            attempt = await attempts.make(claimed)  # and nothing is recorded of it
            clock.advance(minutes=2)
        assert attempt.outcome == "delivered"
        assert claimed.attempt == 1
        assert len(slack.channel.messages) == 1
    finally:
        await database.close()


class _Own:
    """Renderer that renders all events in the same way."""

    async def prepare(self, receiver, event_type, parts):
        pass

    def render(self, receiver, event, part="body"):
        return json.dumps(body("an incident")).encode()

    def contract(self, receiver):
        return None


async def test_a_reply_that_was_moved_out_of_a_deleted_thread_is_found(make, slack, bring):
    alert = await bring(delivery)
    slack.channel.delete(slack.channel.messages[0]["ts"])
    slack.fail(Fault.LOST, "chat.postMessage")
    report = await bring(completed, related={"incident:7": alert.remote_id})
    assert events(slack) == {"evt_2": 1}
    assert report.remote_id == f"{CHANNEL}/{slack.channel.messages[0]['ts']}"


async def test_what_is_sent_again_on_purpose_is_there_already(make, slack, clock, bring):
    await bring(failed)
    clock.advance(hours=1)
    first = f"{CHANNEL}/{slack.channel.messages[0]['ts']}"
    await bring(disabled, remote_id=first)
    clock.advance(hours=1)
    again = await bring(failed, remote_id=first, tried_at=NOON)
    assert again.remote_id == first
    assert slack.channel.messages[0]["text"] == "It was disabled"
    assert set(events(slack).values()) == {1}


# --- the search


async def test_it_is_looked_for_among_what_others_wrote(make, slack, clock, bring):
    slack.fail(Fault.LOST, "chat.postMessage")
    with pytest.raises(TryLater):
        await make().deliver(delivery())
    for number in range(450):
        slack.channel.messages.append({"ts": slack._ts(), "text": f"a person's {number}"})
    await bring(delivery, timeout="5s", tried_at=clock.now())
    assert events_of_ours(slack) == 1
    assert len(slack.calls_of("conversations.history")) == 3


def events_of_ours(slack) -> int:
    return sum("metadata" in message for message in slack.channel.messages)


async def test_the_search_is_bounded(make, slack, clock, bring):
    for number in range(1_200):
        slack.channel.messages.append({"ts": slack._ts(), "text": f"a person's {number}"})
    await bring(delivery, timeout="5s", tried_at=clock.now())
    asked = slack.calls_of("conversations.history")
    assert len(asked) == 5
    assert {call.arguments["limit"] for call in asked} == {"200"}
    assert {float(call.arguments["oldest"]) for call in asked} == {NOON.timestamp() - 300}


async def test_nothing_that_another_has_marked_is_taken_for_ours(make, slack, clock, bring):
    for metadata in (
        None,
        "tocsin_event",
        {"event_type": "tocsin_event"},
        {"event_type": "other", "event_payload": {"event_id": "evt_1"}},
        {"event_type": "tocsin_event", "event_payload": {"event_id": "evt_2"}},
    ):
        slack.channel.messages.append({"ts": slack._ts(), "text": "", "metadata": metadata})
    slack.channel.messages.append({"ts": slack._ts(), "text": "evt_1"})
    await bring(delivery, timeout="5s", tried_at=clock.now())
    assert len(slack.channel.messages) == 7


async def test_it_waits_a_moment_until_a_search_would_find_it(make, clock):
    await make().deliver(delivery(tried_at=clock.now() - timedelta(seconds=1)))
    assert clock.now() == NOON + timedelta(seconds=2)


@pytest.mark.parametrize("ago", [timedelta(hours=1), timedelta(seconds=-60)])
async def test_it_waits_for_no_attempt_that_is_long_over(make, clock, ago):
    await make().deliver(delivery(tried_at=clock.now() - ago))
    assert clock.now() == NOON


# --- without the right to read


@pytest.mark.parametrize("kind", ["channels", "groups"])
async def test_without_the_scope_to_read_it_goes_on_without(make, slack, clock, kind, bring):
    slack.channel.is_private = kind == "groups"
    slack.scopes = set(SCOPES) - {f"{kind}:history"}
    first = await bring(failed, tried_at=clock.now())
    await bring(disabled, remote_id=first.remote_id, tried_at=clock.now())
    assert events(slack) == {"evt_3": 1, "evt_4": 1}


async def test_without_that_scope_a_lost_answer_doubles_a_message(slack, bring):
    slack.scopes = set(SCOPES) - {"channels:history"}
    slack.fail(Fault.LOST, "chat.postMessage")
    await bring(delivery)
    assert events(slack) == {"evt_1": 2}


async def test_outside_of_a_public_channel_it_posts_without_looking(make, slack, clock, bring):
    slack.channel.is_member = False
    slack.scopes = {*SCOPES, "chat:write.public"}
    await bring(delivery, timeout="5s", tried_at=clock.now())
    assert events(slack) == {"evt_1": 1}
