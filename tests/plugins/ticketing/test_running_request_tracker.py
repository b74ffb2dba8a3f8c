"""Request Tracker itself: channel conformance and specific behavior."""

from __future__ import annotations

import pytest

from tocsin import CredentialsRefused, Idempotency, Misconfigured
from tocsin.testing.conformance import ObjectChannelConformance, ObjectChannelHarness, rules
from tocsin_plugins.ticketing import Ticketing

from .request_tracker_proxy import RequestTrackerProxy
from .request_tracker_server import OWNER, QUEUE, REQUESTOR, SERVER, SETUP, run_request_tracker

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not (SETUP and SERVER.exists()), reason="needs Request Tracker 5"),
]


@pytest.fixture(autouse=True)
def _patience(monkeypatch):
    """A request takes Request Tracker a second, and longer beside other tests."""
    monkeypatch.setattr(rules, "LONGEST", 100)


@pytest.fixture(scope="session")
def request_tracker(tmp_path_factory):
    with run_request_tracker(tmp_path_factory.mktemp("rt")) as RequestTrackerProxy.tracker:
        yield


@pytest.mark.usefixtures("request_tracker")
class TestRunningRequestTracker(ObjectChannelConformance):
    channel = Ticketing
    simulator = RequestTrackerProxy
    idempotency = Idempotency.SEARCH
    scenarios = ObjectChannelConformance.scenarios[:1]

    def settings(self, url):
        own = {"project": QUEUE, "secret": RequestTrackerProxy.tracker.token()}
        return {"tracker": "request-tracker", "url": url, "options": {"key_field": "Tocsin"}, **own}


class TestRunningRequestTrackerWithoutAField(TestRunningRequestTracker):
    def settings(self, url):
        return {**super().settings(url), "options": {}}


@pytest.fixture
async def harness(request_tracker):
    async with TestRunningRequestTracker().harness() as harness:
        yield harness


def shown(harness: ObjectChannelHarness, columns: str):
    [row] = harness.simulator.query(f"SELECT {columns} FROM Tickets WHERE Status != 'deleted'")
    return row


async def test_a_ticket_has_what_the_operator_set(harness: ObjectChannelHarness):
    options = {"key_field": "Tocsin", "labels_field": "Labels", "requestor": REQUESTOR}
    harness.use(
        assignee=OWNER,
        labels=["soc", "tocsin"],
        priorities={"High": "70"},
        fields={"Source": "data.provider", "Due": "'2026-11-30T12:00:00+02:00'"},
        options=options,
    )
    await harness.bring(harness.alert())
    assert shown(harness, "Subject, Priority, Due") == ("Port scan", 70, "2026-11-30 10:00:00")
    owner = "(SELECT Name FROM Users WHERE id = Owner)"
    assert shown(harness, owner) == (OWNER,)
    values = harness.simulator.query(
        "SELECT Content FROM ObjectCustomFieldValues WHERE ObjectId = ? AND Disabled = 0",
        harness.objects[0].id,
    )
    assert {"soc", "tocsin", "test"} < {content for (content,) in values}


async def test_a_ticket_is_closed_and_then_the_comment_says_why(harness: ObjectChannelHarness):
    harness.use(close_when="event_type == 'investigation-completed'")
    await harness.bring(harness.alert())
    await harness.bring(harness.completed("incident:7"))
    assert shown(harness, "Status") == ("resolved",)
    kinds = harness.simulator.query(
        """SELECT Type FROM Transactions WHERE ObjectType = 'RT::Ticket' AND ObjectId = ?
           AND Type IN ('Status', 'Comment') ORDER BY id""",
        harness.objects[0].id,
    )
    assert [kind for (kind,) in kinds][-2:] == ["Status", "Comment"]


async def test_a_change_that_another_came_before_is_made_once_more(harness: ObjectChannelHarness):
    harness.use(close_when="event_type == 'investigation-completed'")
    await harness.bring(harness.alert())
    harness.simulator.meanwhile = 1
    await harness.bring(harness.completed("incident:7"))
    assert not harness.objects[0].is_open


async def test_a_ticket_that_depends_on_another_stays_open_with_the_reason(
    harness: ObjectChannelHarness,
):
    harness.use(close_when="event_type == 'investigation-completed'")
    await harness.bring(harness.alert())
    [ticket] = harness.objects
    harness.simulator.block(ticket.id)
    with pytest.raises(Misconfigured, match="depend"):
        await harness.attempt(harness.completed("incident:7"))


async def test_a_user_without_rights_waits_for_the_operator(harness: ObjectChannelHarness):
    harness.use(secret=RequestTrackerProxy.tracker.token("stranger"))
    with pytest.raises((Misconfigured, CredentialsRefused)):
        await harness.attempt(harness.alert())
    assert harness.objects == []


async def test_a_wrong_token_waits_for_the_operator(harness: ObjectChannelHarness):
    harness.use(secret="1-14-not a token of RT")
    for doing in (harness.attempt(harness.alert()), harness.channel.check()):
        with pytest.raises(CredentialsRefused):
            await doing


async def test_the_check_names_all_that_is_not_there(harness: ObjectChannelHarness):
    harness.use(fields={"Origin": "data.provider"}, options={"key_field": "Key"})
    problems = " ".join((await harness.channel.check()).problems)
    assert "Origin" in problems
    assert "Key" in problems
