"""Delivery through an incoming webhook."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest

from tocsin import CredentialsRefused, Misconfigured, Refused, TryLater
from tocsin.testing import Fault

from .deliveries import body, delivery

SECRET = "s3cr3tOfTheWebhook"


@pytest.fixture
def webhook(make, slack):
    return lambda **settings: make(webhook_url=slack.webhook_url, **settings)


async def failure(channel):
    with pytest.raises(Exception, match=r".") as caught:
        await channel.deliver(delivery())
    return caught.value


async def test_an_event_is_posted_without_an_id(webhook, slack):
    receipt = await webhook().deliver(delivery())
    [posted] = slack.webhook_bodies
    assert posted["blocks"] == body("Many failed sign-ins")["blocks"]
    assert (posted["unfurl_links"], posted["unfurl_media"]) == (False, False)
    assert (receipt.status, receipt.response) == (200, b"ok")
    assert (receipt.remote_id, receipt.remote_url) == (None, None)


@pytest.mark.parametrize(
    ("status", "text", "kind"),
    [
        (404, "no_service", CredentialsRefused),
        (403, "invalid_token", CredentialsRefused),
        (403, "team_disabled", CredentialsRefused),
        (404, "channel_not_found", Misconfigured),
        (403, "action_prohibited", Misconfigured),
        (403, "posting_to_general_channel_denied", Misconfigured),
        (400, "invalid_payload", Refused),
        (400, "invalid_blocks", Refused),
        (400, "no_text", Refused),
        (500, "rollup_error", TryLater),
        (503, "<html>busy</html>", TryLater),
        (200, "<html>sign in</html>", TryLater),
        (200, "", TryLater),
        (302, "", TryLater),
        (400, "what_slack_will_add_one_day", TryLater),
    ],
)
async def test_its_errors_are_understood(webhook, slack, status, text, kind):
    slack.webhook_answers.append((status, text))
    raised = await failure(webhook())
    assert type(raised) is kind
    assert (raised.status, raised.response) == (status, text.encode())
    assert str(raised).startswith(f"Slack returned {text if text.isidentifier() else status}")


@pytest.mark.parametrize("text", ["channel_is_archived", ""])
async def test_a_channel_that_was_archived_wants_nothing_more(webhook, slack, text):
    slack.webhook_answers.append((410, text))
    assert (await failure(webhook())).unwanted


async def test_429_holds_the_destination_for_as_long_as_it_says(webhook, slack):
    slack.webhook_answers.append((429, "whatever"))
    raised = await failure(webhook())
    assert (raised.throttled, raised.after) == (True, timedelta(seconds=30))


async def test_what_is_lost_comes_twice(webhook, slack, clock):
    slack.fail(Fault.LOST, "webhook")
    channel = webhook()
    with pytest.raises(TryLater):
        await channel.deliver(delivery())
    await channel.deliver(delivery(attempt=2, tried_at=clock.now()))
    assert len(slack.webhook_bodies) == 2


async def test_check_sends_nothing_and_says_what_it_lacks(webhook, slack):
    health = await webhook().check()
    assert health.problems == ()
    assert "incoming webhook at 127.0.0.1" in health.detail
    assert "do not support threads" in health.detail
    assert "posts the event twice" in health.detail
    assert slack.webhook_bodies == []


@pytest.mark.parametrize("host", ["10.0.0.1", "169.254.169.254", "localhost"])
async def test_an_address_that_may_not_be_reached_is_a_problem(make, host):
    url = f"https://{host}/services/T/B/{SECRET}"
    channel = make(webhook_url=url, allow_networks=["203.0.113.0/24"])
    [problem] = (await channel.check()).problems
    assert problem.startswith("webhook_url: ")
    assert SECRET not in problem


async def test_an_address_that_can_never_be_requested_does_not_start(make, webhook):
    await webhook().start()
    with pytest.raises(Misconfigured) as caught:
        await make(webhook_url=f"https://10.0.0.1/services/T/B/{SECRET}").start()
    assert SECRET not in str(caught.value)


async def test_the_url_is_shown_nowhere(webhook, slack, caplog):
    caplog.set_level(logging.DEBUG)
    channel = webhook(timeout="100ms")
    shown = [repr(channel.settings), channel.settings.model_dump_json(), repr(vars(channel))]
    for answer in ((500, "rollup_error"), (404, "no_service"), (302, "")):
        slack.webhook_answers.append(answer)
        shown.append(repr(await failure(channel)))
    for fault in (Fault.RESTARTED, Fault.SLOW, Fault.CUT):
        slack.fail(fault, "webhook")
        raised = await failure(channel)
        shown += [repr(raised), repr(raised.__cause__)]
    shown += [(await channel.check()).detail, caplog.text]
    assert not any(SECRET in text for text in shown)
