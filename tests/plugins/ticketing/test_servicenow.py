"""The contract of a channel, kept with two tables of ServiceNow, and what only ServiceNow has."""

from __future__ import annotations

from pathlib import Path

import pytest

import tocsin_templates
from tocsin import Broken, CredentialsRefused, Idempotency, Misconfigured
from tocsin.testing.conformance import ChannelConformance, ChannelHarness
from tocsin_plugins.ticketing import Ticketing
from tocsin_plugins.ticketing.servicenow.fields import correlation_id

from .servicenow_simulator import (
    API_KEY,
    GROUP,
    PASSWORD,
    USER,
    SecurityIncidentSimulator,
    ServiceNowSimulator,
)

CLOSING = {"close_code": "Solution provided"}


class TestIncidents(ChannelConformance):
    channel = Ticketing
    simulator = ServiceNowSimulator
    idempotency = Idempotency.SEARCH

    def settings(self, url):
        known = {"tracker": "servicenow", "url": url, "project": self.simulator.table}
        return {**known, "username": USER, "secret": PASSWORD, "options": CLOSING}

    def template_paths(self):
        return list(map(Path, tocsin_templates.tocsin_template_paths()))


class TestSecurityIncidents(TestIncidents):
    simulator = SecurityIncidentSimulator


@pytest.fixture
async def lab():
    async with TestIncidents().harness() as lab:
        yield lab


def the_record(lab: ChannelHarness):
    [record] = lab.simulator.records.values()
    return record


async def test_a_record_has_what_the_operator_set(lab: ChannelHarness):
    lab.use(assignee="b" * 32, fields={"category": "'security'", "caller_id": "'c' ~ 1"})
    event = lab.alert()
    receipt = await lab.bring(event)
    record = the_record(lab)
    assert (record["correlation_id"], record["correlation_display"]) == (event.key, "Tocsin")
    assert (record["impact"], record["urgency"], record["priority"]) == ("2", "1", "2")
    assert (record["assigned_to"], record["category"]) == ("b" * 32, "security")
    page = f"nav_to.do?uri=incident.do%3Fsys_id%3D{record['sys_id']}"
    assert receipt.remote_url == f"{lab.simulator.url}/{page}"


async def test_names_are_read_as_they_are_shown_where_that_is_asked_for(lab: ChannelHarness):
    lab.use(fields={"assignment_group": "'Network'"}, options={"display_values": True})
    await lab.bring(lab.alert())
    assert the_record(lab)["assignment_group"] == GROUP["Network"]


async def test_a_priority_is_impact_and_urgency_or_itself(lab: ChannelHarness):
    lab.use(priorities={"Medium": "3/2", "High": "1"})
    await lab.bring(lab.failed(1))
    assert the_record(lab)["priority"] == "4"
    await lab.bring(lab.disabled())
    assert the_record(lab)["priority"] == "1"


async def test_an_api_key_is_enough(lab: ChannelHarness):
    lab.use(username=None, secret=API_KEY)
    await lab.bring(lab.alert())
    assert "Authorization" not in lab.simulator.requests[-1].headers


@pytest.mark.parametrize(
    "key", ["incident:7^ORactive=true", "a" * 101, "ä", "x\ny", "a,b", "javascript:x"]
)
def test_no_key_can_mean_more_than_itself_in_a_query(key):
    assert correlation_id(key).isalnum()
    assert len(correlation_id(key)) < 100
    assert correlation_id(f"incident:{'0' * 32}") == f"incident:{'0' * 32}"


async def test_a_correlation_id_that_cannot_be_asked_for_finds_nobody_elses_record(
    lab: ChannelHarness,
):
    """ServiceNow drops the condition and answers with any record."""
    await lab.bring(lab.alert(number=1))
    lab.clock.advance(seconds=600)
    lab.simulator.hidden = {"correlation_id"}
    with pytest.raises(Misconfigured, match="cannot be found by their correlation_id"):
        await lab.attempt(lab.alert(number=2))
    [problem] = (await lab.channel.check()).problems
    assert problem.startswith("project: records of incident cannot be found")


async def test_a_journal_that_cannot_be_read_is_not_added_to(lab: ChannelHarness):
    await lab.bring(lab.alert())
    lab.simulator.hidden = {"work_notes"}
    with pytest.raises(Misconfigured, match="work_notes of incident is hidden"):
        await lab.attempt(lab.completed("incident:7"))


async def test_what_a_data_policy_wants_reaches_the_operator(lab: ChannelHarness):
    lab.use(options={})
    await lab.bring(lab.alert())
    words = r"answered 403: Operation Failed: Data Policy Exception: .* mandatory: Close code"
    with pytest.raises(Misconfigured, match=words) as caught:
        await lab.channel.close(the_record(lab)["sys_id"], "over")
    assert not isinstance(caught.value, CredentialsRefused)


async def test_closing_says_why_and_how(lab: ChannelHarness):
    lab.use(options={**CLOSING, "close_notes": "As agreed."})
    await lab.bring(lab.alert())
    await lab.channel.close(the_record(lab)["sys_id"], "over")
    record = the_record(lab)
    assert (record["state"], record["close_code"]) == ("6", "Solution provided")
    assert (record["close_notes"], record["journal"]) == ("As agreed.", ["over"])


async def test_a_record_that_takes_nothing_more_can_be_followed_by_another(lab: ChannelHarness):
    lab.simulator.read_only_when_inactive = True
    await lab.bring(lab.alert())
    the_record(lab).update(state="7", active="false")
    with pytest.raises(CredentialsRefused, match="ACL Exception"):
        await lab.attempt(lab.completed("incident:7"))
    lab.use(options={"new_after_close": True})
    await lab.bring(lab.completed("incident:7"))
    assert [record["active"] for record in lab.simulator.records.values()] == ["false", "true"]


async def test_an_instance_that_hibernates_is_named(lab: ChannelHarness):
    lab.simulator.hibernates = True
    with pytest.raises(Broken, match="developer instance that hibernates"):
        await lab.channel.check()


async def test_an_answer_that_was_cancelled_is_no_answer(lab: ChannelHarness):
    lab.simulator.is_cancelled = True
    with pytest.raises(Broken, match="in part only: Transaction cancelled"):
        await lab.attempt(lab.alert())


async def test_the_check_names_everything_at_once(lab: ChannelHarness):
    lab.use(
        labels=["soc"],
        issue_type="Task",
        priorities={"High": "2/"},
        close_recovered=True,
        options={"close_code": "Solved"},
    )
    problems = (await lab.channel.check()).problems
    assert [problem.partition(":")[0] for problem in problems] == [
        "labels",
        "issue_type",
        "priorities.High",
        "options.close_code",
    ]
    assert "give one of: Duplicate, Solution provided" in problems[-1]


async def test_the_check_says_what_it_cannot_know(lab: ChannelHarness):
    assert "people have to fill in caller_id" in (await lab.channel.check()).detail
    lab.simulator.lacks = {"personalize"}
    lab.use(close_recovered=True, options={})
    health = await lab.channel.check()
    assert (
        health.detail == "incident can be read; whether records may be made, only making one shows"
    )
    assert [problem.partition(":")[0] for problem in health.problems] == ["options.close_code"]


@pytest.mark.parametrize(
    ("project", "words"), [("Incident Table", "is no table"), ("nothing", "Invalid table nothing")]
)
async def test_the_check_names_a_table_that_is_none(lab: ChannelHarness, project, words):
    lab.use(project=project)
    [problem] = (await lab.channel.check()).problems
    assert words in problem
