"""Messages of changed incidents, and reports of investigations that people start."""

from __future__ import annotations

import json

import pytest

from tocsin import ChangeType
from tocsin.testing import Fault

from .deliveries import NOON, SESSION, body, delivery


def changed(text: str = "It is closed", **members):
    return delivery(text, ChangeType.INCIDENT_CHANGED, event_id="evt_5", **members)


def finished(text: str = "It was benign", **members):
    members = {"event_id": "evt_6", "about": ("incident:7",), **members}
    return delivery(text, ChangeType.INVESTIGATION_FINISHED, SESSION, **members)


async def test_the_message_of_a_changed_incident_is_updated_and_nothing_posted(make, slack):
    channel = make(follow_changes=True)
    first = await channel.deliver(delivery())
    for _ in range(2):
        receipt = await channel.follow(changed(remote_id=first.remote_id))
        assert receipt.remote_id == first.remote_id
    [message] = slack.channel.messages
    assert message["blocks"] == body("It is closed")["blocks"]


async def test_nothing_is_posted_for_an_incident_without_a_message(make, slack):
    channel = make(follow_changes=True)
    await channel.follow(changed())
    await channel.follow(finished())
    assert slack.channel.messages == []


@pytest.mark.parametrize("is_lost", [False, True])
async def test_a_report_is_added_once_to_the_thread_of_its_incident(make, slack, clock, is_lost):
    channel = make(follow_changes=True)
    first = await channel.deliver(delivery())
    related = {"incident:7": first.remote_id}
    if is_lost:
        slack.fail(Fault.ERROR, "chat.postMessage", done=True)
        with pytest.raises(Exception, match=r"."):
            await channel.follow(finished(related=related))
        await channel.follow(finished(related=related, tried_at=NOON, attempt=2))
    else:
        await channel.follow(finished(related=related))
    [root, reply] = slack.channel.messages
    assert reply["thread_ts"] == root["ts"]
    assert json.dumps(reply["blocks"]) == json.dumps(body("It was benign")["blocks"])


def test_an_incoming_webhook_cannot_follow(make):
    with pytest.raises(Exception, match="or remove follow_changes"):
        make(webhook_url="http://127.0.0.1/services/T/B/x", follow_changes=True)
