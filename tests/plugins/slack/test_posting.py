"""Messages that a bot posts, their threads and their later updates."""

from __future__ import annotations

import json

import pytest

from tocsin import Broken, EventType, Misconfigured, Refused, TryLater
from tocsin.testing import Fault

from .deliveries import SCHEDULE, SESSION, body, completed, delivery, disabled, failed
from .simulator import CHANNEL, Channel


async def test_an_event_becomes_a_message_of_the_channel(make, slack):
    receipt = await make().deliver(delivery())
    [message] = slack.channel.messages
    assert message["blocks"] == body("Many failed sign-ins")["blocks"]
    assert message["text"] == "Many failed sign-ins"
    assert "thread_ts" not in message
    assert receipt.status == 200
    assert receipt.remote_id == f"{CHANNEL}/{message['ts']}"
    assert json.loads(receipt.response)["ts"] == message["ts"]


async def test_a_receipt_says_where_a_person_sees_the_message(make, slack):
    first = await make().deliver(delivery())
    [root] = slack.channel.messages
    assert first.remote_url == f"https://example.slack.com/archives/{CHANNEL}/p" + root[
        "ts"
    ].replace(".", "")
    reply = await make().deliver(completed(related={"incident:7": first.remote_id}))
    assert reply.remote_url.endswith(f"?thread_ts={root['ts']}&cid={CHANNEL}")


async def test_without_the_workspaces_address_it_is_posted_all_the_same(make, slack):
    slack.fail(Fault.ERROR, "auth.test")
    assert (await make().deliver(delivery())).remote_url is None
    assert len(slack.channel.messages) == 1


async def test_the_workspaces_address_is_asked_for_once(make, slack):
    channel = make()
    for number in range(3):
        await channel.deliver(delivery(event_id=f"evt_{number}"))
    assert len(slack.calls_of("auth.test")) == 1


async def test_a_message_is_marked_with_its_event(make, slack):
    await make().deliver(delivery(event_id="evt_8"))
    [message] = slack.channel.messages
    assert message["metadata"]["event_payload"] == {"event_id": "evt_8"}


async def test_nothing_is_linked_or_previewed_by_guessing(make, slack):
    content = {**body("a"), "unfurl_links": True, "link_names": True, "channel": "C9999999999"}
    first = await make().deliver(delivery(content=content))
    await make().deliver(delivery(content=content, event_id="evt_2", remote_id=first.remote_id))
    [posted, reply] = slack.calls_of("chat.postMessage")
    for asked in (posted, reply):
        assert asked.arguments["unfurl_links"] is asked.arguments["unfurl_media"] is False
        assert asked.arguments["link_names"] is False
    [updated] = slack.calls_of("chat.update")
    assert (updated.arguments["parse"], updated.arguments["link_names"]) == ("none", False)
    assert {call.arguments["channel"] for call in (posted, reply, updated)} == {CHANNEL}


async def test_the_first_attempt_looks_for_nothing(make, slack):
    await make().deliver(delivery())
    assert [call.method for call in slack.asked] == ["auth.test", "chat.postMessage"]


# --- threads


async def test_a_later_event_of_the_subject_updates_the_first_message_and_replies_to_it(
    make, slack
):
    channel = make()
    first = await channel.deliver(failed("failed once"))
    second = await channel.deliver(disabled("disabled", remote_id=first.remote_id))
    root, reply = slack.channel.messages
    assert root["text"] == "disabled"
    assert root["blocks"] == body("disabled")["blocks"]
    assert (reply["text"], reply["thread_ts"]) == ("disabled", root["ts"])
    assert second.remote_id == first.remote_id


async def test_the_updated_message_stays_marked_with_its_own_event(make, slack):
    first = await make().deliver(failed())
    await make().deliver(disabled(remote_id=first.remote_id))
    root, reply = slack.channel.messages
    assert root["metadata"]["event_payload"]["event_id"] == "evt_3"
    assert reply["metadata"]["event_payload"]["event_id"] == "evt_4"


async def test_an_investigation_of_an_incident_is_told_in_the_incidents_thread(make, slack):
    alert = await make().deliver(delivery("an incident"))
    report = await make().deliver(completed("benign", related={"incident:7": alert.remote_id}))
    root, reply = slack.channel.messages
    assert root["text"] == "an incident"
    assert (reply["text"], reply["thread_ts"]) == ("benign", root["ts"])
    assert report.remote_id == alert.remote_id


async def test_what_follows_an_investigation_leaves_the_incidents_message_as_it_is(make, slack):
    alert = await make().deliver(delivery("an incident"))
    again = completed(
        "again",
        event_id="evt_9",
        remote_id=alert.remote_id,
        related={"incident:7": alert.remote_id},
    )
    await make().deliver(again)
    root, reply = slack.channel.messages
    assert (root["text"], reply["text"]) == ("an incident", "again")


async def test_an_investigation_of_several_incidents_is_a_message_of_its_own(make, slack):
    alert = await make().deliver(delivery())
    several = completed(about=("incident:7", "incident:8"), related={"incident:7": alert.remote_id})
    report = await make().deliver(several)
    assert len(slack.channel.roots) == 2
    assert report.remote_id != alert.remote_id


async def test_a_schedule_that_failed_once_does_not_draw_its_later_reports_into_that_thread(
    make, slack
):
    failure = await make().deliver(failed())
    report = await make().deliver(
        completed(about=(SCHEDULE,), related={SCHEDULE: failure.remote_id})
    )
    assert len(slack.channel.roots) == 2
    assert report.remote_id != failure.remote_id


@pytest.mark.parametrize(("later", "shows"), [(failed, True), (disabled, True), (completed, False)])
async def test_what_must_not_be_overlooked_shows_in_the_channel_as_well(make, slack, later, shows):
    first = await make().deliver(delivery(event_id="evt_0", subject=later().event.subject))
    await make().deliver(later(remote_id=first.remote_id))
    assert len(slack.channel.roots) == 1 + shows


async def test_what_shows_in_the_channel_can_be_chosen(make, slack):
    channel = make(broadcast=["investigation-completed"])
    first = await channel.deliver(delivery())
    await channel.deliver(completed(related={"incident:7": first.remote_id}))
    assert [root["text"] for root in slack.channel.roots] == [
        "Many failed sign-ins",
        "It was benign",
    ]


@pytest.mark.parametrize("remote", ["C9999999999/1795262400.000100", "INC0010042", "x/", "/"])
async def test_what_was_left_in_another_place_is_no_thread_here(make, slack, remote):
    receipt = await make().deliver(delivery(remote_id=remote))
    [message] = slack.channel.messages
    [asked] = slack.calls_of("chat.postMessage")
    assert "thread_ts" not in asked.arguments
    assert slack.calls_of("chat.update") == []
    assert receipt.remote_id == f"{CHANNEL}/{message['ts']}"


async def test_a_thread_whose_first_message_was_deleted_begins_anew(make, slack):
    first = await make().deliver(failed())
    slack.channel.delete(slack.channel.messages[0]["ts"])
    second = await make().deliver(disabled(remote_id=first.remote_id))
    [message] = slack.channel.messages
    assert "thread_ts" not in message
    assert second.remote_id == f"{CHANNEL}/{message['ts']}"


async def test_a_reply_that_slack_moved_out_of_a_deleted_thread_begins_one(make, slack):
    alert = await make().deliver(delivery())
    slack.channel.delete(slack.channel.messages[0]["ts"])
    report = await make().deliver(completed(related={"incident:7": alert.remote_id}))
    [message] = slack.channel.messages
    assert report.remote_id == f"{CHANNEL}/{message['ts']}"


@pytest.mark.parametrize("error", ["edit_window_closed", "cant_update_message", "msg_too_long"])
async def test_a_first_message_that_cannot_be_updated_keeps_no_event_back(make, slack, error):
    first = await make().deliver(failed("failed once"))
    slack.fail(error, "chat.update")
    await make().deliver(disabled("disabled", remote_id=first.remote_id))
    root, reply = slack.channel.messages
    assert (root["text"], reply["text"]) == ("failed once", "disabled")


@pytest.mark.parametrize("error", ["thread_not_found", "restricted_action_thread_locked"])
async def test_where_a_thread_takes_no_replies_the_event_begins_one(make, slack, error):
    alert = await make().deliver(delivery())
    slack.fail(error, "chat.postMessage")
    report = await make().deliver(completed(related={"incident:7": alert.remote_id}))
    assert len(slack.channel.roots) == 2
    assert report.remote_id == f"{CHANNEL}/{slack.channel.messages[1]['ts']}"


async def test_a_direct_message_is_a_channel_too(make, slack):
    slack.channels["D0123456789"] = Channel("D0123456789")
    receipt = await make(channel="D0123456789").deliver(delivery())
    assert receipt.remote_id.startswith("D0123456789/")


# --- what is no message


@pytest.mark.parametrize("content", [["a"], "text", 7])
async def test_a_template_that_makes_no_message_waits_to_be_mended(make, slack, content):
    with pytest.raises(Misconfigured, match="must render a JSON object"):
        await make().deliver(delivery(content=content))
    assert slack.channel.messages == []


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"text": "a", "blocks": [{"type": "divider"}] * 51}, "no more than 50 items"),
        (body("x" * 3_001), "cannot exceed 3000 characters"),
        ({"blocks": [{"type": "nonsense"}]}, "unsupported type"),
        ({"blocks": body("x" * 2_900)["blocks"] * 4}, "msg_blocks_too_long"),
        ({"text": ""}, "no_text"),
    ],
)
async def test_what_slack_does_not_take_is_refused_in_its_words(make, slack, content, words):
    with pytest.raises(Refused, match=words) as caught:
        await make().deliver(delivery(content=content))
    assert not isinstance(caught.value, Misconfigured)
    assert caught.value.status == 200
    assert json.loads(caught.value.response)["ok"] is False


async def test_an_answer_without_a_message_is_no_receipt(make, slack, monkeypatch):
    monkeypatch.setattr(slack, "_post", lambda _: {"channel": CHANNEL})
    with pytest.raises(Broken, match="returned no message"):
        await make().deliver(delivery())


async def test_an_attempt_ends_with_its_time_out(make, slack):
    slack.fail(Fault.SLOW, "chat.postMessage")
    with pytest.raises(TryLater, match="timeout"):
        await make(timeout="100ms").deliver(delivery())


def test_every_kind_of_event_has_its_subject():
    kinds = {each.event.event_type for each in (delivery(), completed(), failed(), disabled())}
    assert kinds == set(EventType)
    assert completed().event.subject == SESSION
