"""Roundup tracker: channel conformance with a running Roundup, and specific behavior."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tocsin import CredentialsRefused, Idempotency, Misconfigured, TryLater
from tocsin.testing import Fault
from tocsin.testing.conformance import ObjectChannelConformance, ObjectChannelHarness
from tocsin_plugins.ticketing import Ticketing

from .roundup_proxy import RoundupProxy
from .roundup_server import BOT, GUESSED, KEYWORD, PASSWORD, STRANGER, run_roundup


@pytest.fixture(scope="session")
def roundup(tmp_path_factory):
    with run_roundup(tmp_path_factory.mktemp("roundup")) as RoundupProxy.tracker:
        yield


@pytest.mark.usefixtures("roundup")
class TestRoundup(ObjectChannelConformance):
    channel = Ticketing
    simulator = RoundupProxy
    idempotency = Idempotency.SEARCH
    scenarios = ObjectChannelConformance.scenarios[:1]

    def settings(self, url):
        signed = {"username": BOT, "secret": PASSWORD}
        own = {"project": "issue", "options": {"origin": RoundupProxy.tracker.url}}
        return {"tracker": "roundup", "url": url, **signed, **own}


EVERY_STEP = (
    "test_a_failure_at_any_step_changes_no_result",
    "test_a_lost_response_at_any_step_changes_no_result",
)


@pytest.mark.full
@pytest.mark.usefixtures("roundup")
@pytest.mark.parametrize(
    "scenario", ObjectChannelConformance.scenarios[1:], ids=lambda scenario: scenario.__name__[1:]
)
@pytest.mark.parametrize("rule", EVERY_STEP)
def test_failures_at_any_step_of_other_scenarios(rule, scenario):
    suite = TestRoundup()
    suite.scenarios = (scenario,)
    getattr(suite, rule)()


@pytest.fixture
async def harness(roundup):
    async with TestRoundup().harness() as harness:
        yield harness


async def test_an_issue_has_what_the_operator_set(harness: ObjectChannelHarness):
    own = {"fields": {"nosy": "['admin']"}, "priorities": {"High": "critical"}}
    harness.use(labels=[KEYWORD], assignee="admin", **own)
    receipt = await harness.bring(harness.alert())
    [issue] = harness.simulator.listed(
        "issue", **{"@fields": "title,priority,keyword,assignedto,nosy", "@verbose": "2"}
    )
    assert issue["title"] == "Port scan"
    assert (issue["priority"]["name"], issue["assignedto"]["username"]) == ("critical", "admin")
    assert [keyword["name"] for keyword in issue["keyword"]] == [KEYWORD]
    assert "admin" in [user["username"] for user in issue["nosy"]]
    assert receipt.remote_url == f"{harness.simulator.url}/issue{issue['id']}"


async def test_its_text_is_a_message_of_who_signs_in_at_its_time(harness: ObjectChannelHarness):
    await harness.bring(harness.alert())
    fields = {"@fields": "author,date,creation,recipients", "@verbose": "2"}
    [message] = harness.simulator.listed("msg", **fields)
    assert message["author"]["username"] == BOT
    assert message["date"] == message["creation"]


async def test_a_request_that_arrives_twice_makes_one_issue(harness: ObjectChannelHarness):
    harness.simulator.doubles = True
    receipt = await harness.bring(harness.alert())
    [issue] = harness.objects
    assert receipt.remote_id == issue.id


async def test_a_message_that_a_crash_left_without_its_issue_is_used(harness: ObjectChannelHarness):
    alert = harness.alert()
    harness.simulator.fail(Fault.ERROR, after=3)
    await harness.failure(harness.attempt(alert))
    assert (harness.objects, len(harness.simulator.listed("msg"))) == ([], 1)
    harness.clock.advance(minutes=1)
    await harness.bring(alert)
    assert len(harness.simulator.listed("msg")) == len(harness.objects) == 1


async def test_a_change_that_another_came_before_is_made_once_more(harness: ObjectChannelHarness):
    await harness.bring(harness.failed(1))
    harness.simulator.meanwhile = 1
    await harness.attempt(harness.failed(2))
    [issue] = harness.objects
    assert len(issue.notes) == 1
    harness.simulator.meanwhile = 2
    error = await harness.failure(harness.attempt(harness.failed(3)))
    assert isinstance(error, TryLater)
    assert error.partly


async def test_a_comment_opens_nothing_that_was_resolved(harness: ObjectChannelHarness):
    await harness.bring(harness.alert())
    [issue] = harness.objects
    await harness.channel.tracker.close(issue.id, "enough")
    await harness.bring(harness.completed("incident:7"))
    assert [(object_.is_open, len(object_.notes)) for object_ in harness.objects] == [(False, 2)]


async def test_a_comment_is_plain_text_without_addresses_to_follow(harness: ObjectChannelHarness):
    await harness.bring(harness.failed(1))
    [issue] = harness.objects
    await harness.channel.tracker.add_note(issue.id, "**Seen** at `http://evil.example/x`\n\nevt_9")
    assert harness.objects[0].notes == ["Seen at hxxp[://]evil[.]example/x\n\nevt_9"]


async def test_bad_logins_are_waited_for_as_long_as_roundup_asks(harness: ObjectChannelHarness):
    harness.use(username=GUESSED, secret="a wrong one")  # whose login then is refused for a while
    errors = [await harness.failure(harness.attempt(harness.alert())) for _ in range(5)]
    assert all(isinstance(error, CredentialsRefused) for error in errors[:4])
    assert isinstance(errors[4], TryLater)
    assert errors[4].after == timedelta(seconds=150)
    assert errors[4].throttled


async def test_another_origin_than_the_trackers_own_waits_for_the_operator(
    harness: ObjectChannelHarness,
):
    harness.use(options={})
    for doing in (harness.attempt(harness.alert()), harness.channel.check()):
        with pytest.raises(Misconfigured, match="not allowed to use Rest Interface"):
            await doing


async def test_a_user_without_rest_access_waits_for_the_operator(harness: ObjectChannelHarness):
    harness.use(username=STRANGER)
    for doing in (harness.attempt(harness.alert()), harness.channel.check()):
        with pytest.raises(CredentialsRefused):
            await doing


async def test_the_check_names_all_that_is_not_there(harness: ObjectChannelHarness):
    own = {"origin": RoundupProxy.tracker.url, "closed_status": "over"}
    harness.use(options=own, labels=["new"], assignee="j.doe", priorities={"Low": "none"})
    problems = ("status over", "priority none", "keyword new", "user j.doe")
    assert (await harness.channel.check()).problems == tuple(
        f"the {problem} does not exist" for problem in problems
    )
    with pytest.raises(Misconfigured, match="is not a keyword"):
        await harness.attempt(harness.alert())
    assert not harness.objects


async def test_the_check_names_the_project_beside_what_else_is_missing(
    harness: ObjectChannelHarness,
):
    harness.use(project="issues", labels=["new"], assignee="j.doe")
    problems = (await harness.channel.check()).problems
    assert problems == (
        "project: the class issues does not exist; the default templates use `issue`",
        "the keyword new does not exist",
        "the user j.doe does not exist",
    )


async def test_the_check_says_which_settings_a_wrong_password_may_come_of(
    harness: ObjectChannelHarness,
):
    harness.use(username="nobody", secret="a wrong one")
    with pytest.raises(CredentialsRefused, match=r"^username or secret: "):
        await harness.channel.check()


async def test_a_name_is_needed(harness: ObjectChannelHarness):
    harness.use(username=None)
    with pytest.raises(Misconfigured, match="username"):
        await harness.channel.check()
