"""Check of a bot and its channel, without posting."""

from __future__ import annotations

import pytest

from tocsin import Misconfigured, TryLater
from tocsin.testing import Fault

from .simulator import CHANNEL, SCOPES


async def test_all_is_well(make, slack):
    health = await make().check()
    assert health.problems == ()
    assert health.detail.startswith("tocsin in the workspace Example posts to #soc-alerts; ")
    assert "does not post any event twice" in health.detail
    assert slack.channel.messages == []


async def test_a_wrong_token_is_a_problem(make):
    health = await make(bot_token="xoxb-1-2-wrong").check()
    [problem] = health.problems
    assert problem.startswith("bot_token: Slack returned invalid_auth")


async def test_every_problem_is_named_at_once(make, slack):
    slack.scopes = {"channels:read", "channels:history"}
    slack.channel.is_member = False
    first, second = (await make().check()).problems
    assert "lacks the scope chat:write" in first
    assert second.startswith("channel: invite the app")


async def test_a_channel_that_is_not_there_is_a_problem(make):
    [problem] = (await make(channel="C9999999999").check()).problems
    assert problem.startswith("channel: the channel does not exist")


async def test_an_archived_channel_is_a_problem(make, slack):
    slack.channel.is_archived = True
    assert (await make().check()).problems == (
        "channel: the channel is archived; unarchive it, or use another channel",
    )


@pytest.mark.parametrize("kind", ["channels", "groups"])
async def test_that_it_may_not_read_is_no_problem_but_told_with_what_follows(make, slack, kind):
    slack.channel.is_private = kind == "groups"
    slack.scopes = set(SCOPES) - {f"{kind}:history"}
    health = await make().check()
    assert health.problems == ()
    assert f"without the scope {kind}:history" in health.detail
    assert "may post an event twice" in health.detail


@pytest.mark.parametrize("left", [{"chat:write"}, {"chat:write", "channels:history"}])
async def test_the_least_scopes_do(make, slack, left):
    slack.scopes = left
    health = await make().check()
    assert health.problems == ()
    assert f"to {CHANNEL} (to see its name" in health.detail
    assert "grant the scope channels:read)" in health.detail


async def test_without_the_scope_to_see_the_channel_its_messages_tell_of_it(make, slack):
    slack.scopes = {"chat:write", "channels:history"}
    slack.channel.is_member = False
    [problem] = (await make().check()).problems
    assert problem.startswith("channel: invite the app")


async def test_without_the_scope_to_read_its_messages_the_channel_tells_of_itself(make, slack):
    slack.scopes = {"chat:write", "channels:read"}
    slack.channel.is_member = False
    [problem] = (await make().check()).problems
    assert problem.startswith("channel: invite the app")


async def test_a_public_channel_can_be_posted_to_from_outside_with_the_scope_for_that(make, slack):
    slack.scopes = {*SCOPES, "chat:write.public"}
    slack.channel.is_member = False
    health = await make().check()
    assert health.problems == ()
    assert "may post an event twice" in health.detail


async def test_where_slack_names_no_scopes_none_is_missed(make, slack, monkeypatch):
    monkeypatch.setattr("tocsin_plugins.slack.web_api._scopes", lambda _: None)
    assert (await make().check()).problems == ()


async def test_that_slack_is_away_is_no_problem_of_the_settings(make, slack):
    slack.fail(Fault.THROTTLED, "auth.test")
    with pytest.raises(TryLater):
        await make().check()


async def test_an_address_that_may_not_be_reached_does_not_start(make):
    with pytest.raises(Misconfigured, match="allow_networks"):
        await make(api_url="https://10.0.0.1/api").start()
    await make().start()
