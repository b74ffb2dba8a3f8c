"""Classification of Slack's errors: transient, permanent or for the operator."""

from __future__ import annotations

import json
import logging
from datetime import timedelta

import pytest

from tocsin import Broken, CredentialsRefused, Misconfigured, Refused, TryLater
from tocsin.testing import Fault

from .deliveries import delivery, failed
from .simulator import TOKEN, Channel

CREDENTIALS = ("invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired")
CONFIGURATION = (
    "channel_not_found",
    "not_in_channel",
    "no_permission",
    "restricted_action",
    "team_access_not_granted",
    "access_denied",
)
PERMANENT = (
    "invalid_blocks",
    "msg_too_long",
    "msg_blocks_too_long",
    "no_text",
    "invalid_arguments",
)
PASSING = (
    "internal_error",
    "fatal_error",
    "service_unavailable",
    "request_timeout",
    "team_added_to_org",
    "what_slack_will_add_one_day",
)


async def failure(channel, told=None):
    with pytest.raises(Exception, match=r".") as caught:
        await channel.deliver(told or delivery())
    return caught.value


@pytest.fixture
def answered(make, slack):
    """Return the exception that is raised if Slack returns an error for a post."""

    async def answered(error):
        slack.fail(error, "chat.postMessage")
        return await failure(make())

    return answered


@pytest.mark.parametrize("error", CREDENTIALS)
async def test_a_token_that_is_not_taken_waits_for_the_operator(answered, error):
    raised = await answered(error)
    assert type(raised) is CredentialsRefused
    assert error in str(raised)
    assert "token" in str(raised)


@pytest.mark.parametrize("error", CONFIGURATION)
async def test_what_is_not_allowed_waits_for_the_operator_and_says_what_to_do(answered, error):
    raised = await answered(error)
    assert type(raised) is Misconfigured
    assert str(raised).startswith(f"Slack returned {error}: ")


async def test_a_scope_that_is_missing_is_named(make, slack):
    slack.scopes.remove("chat:write")
    raised = await failure(make())
    assert type(raised) is Misconfigured
    assert "lacks the scope chat:write" in str(raised)
    assert "install the app again" in str(raised)


async def test_a_channel_that_was_archived_wants_nothing_more(make, slack):
    slack.channel.is_archived = True
    raised = await failure(make())
    assert type(raised) is Refused
    assert raised.unwanted


@pytest.mark.parametrize("error", PERMANENT)
async def test_what_slack_will_never_take_is_not_tried_again(answered, error):
    raised = await answered(error)
    assert type(raised) is Refused
    assert not raised.unwanted


@pytest.mark.parametrize("error", PASSING)
async def test_what_passes_is_tried_again(answered, error):
    raised = await answered(error)
    assert type(raised) is TryLater
    assert not raised.throttled


@pytest.mark.parametrize("error", ["ratelimited", "rate_limited", "message_limit_exceeded"])
async def test_too_many_calls_hold_the_destination(answered, error):
    raised = await answered(error)
    assert (raised.throttled, raised.after) == (True, timedelta(seconds=30))


@pytest.mark.parametrize("method", ["chat.postMessage", "chat.update", "conversations.replies"])
async def test_429_holds_the_destination_for_as_long_as_it_says(make, slack, clock, method):
    first = await make().deliver(failed())
    slack.most_per_minute[method] = 0
    raised = await failure(
        make(), failed(event_id="evt_9", remote_id=first.remote_id, tried_at=clock.now())
    )
    assert type(raised) is TryLater
    assert (raised.throttled, raised.after) == (True, timedelta(seconds=30))
    assert raised.status == 429


@pytest.mark.parametrize("fault", [Fault.ERROR, Fault.BAD_GATEWAY, Fault.LOGIN_PAGE, Fault.EMPTY])
async def test_an_answer_that_is_not_slacks_is_tried_again(make, slack, fault):
    slack.fail(fault, "chat.postMessage")
    assert isinstance(await failure(make()), TryLater | Broken)


async def test_what_was_answered_is_kept(answered):
    raised = await answered("channel_not_found")
    assert raised.status == 200
    assert json.loads(raised.response) == {"ok": False, "error": "channel_not_found"}


async def test_a_private_channel_that_it_was_not_invited_to_is_one_that_it_cannot_see(make, slack):
    slack.channels["C9999999999"] = Channel("C9999999999", is_private=True, is_member=False)
    raised = await failure(make(channel="C9999999999"))
    assert type(raised) is Misconfigured
    assert "invite the app" in str(raised)


async def test_the_token_is_shown_nowhere(make, slack, caplog):
    caplog.set_level(logging.DEBUG)
    channel = make()
    shown = [repr(channel.settings), channel.settings.model_dump_json(), repr(vars(channel))]
    for fault in (Fault.ERROR, Fault.UNAUTHORIZED, Fault.RESTARTED):
        slack.fail(fault, "chat.postMessage")
        raised = await failure(channel)
        shown += [repr(raised), repr(raised.__cause__), repr(raised.__context__)]
    health = await channel.check()
    shown += [health.detail, *health.problems, caplog.text]
    assert not any(TOKEN in text for text in shown)
    assert all("token" not in asked.arguments for asked in slack.asked)
