"""ServiceNow tracker: channel conformance with two tables, and specific behavior."""

from __future__ import annotations

from pathlib import Path

import pytest

import tocsin_templates
from tocsin import (
    Broken,
    CredentialsRefused,
    Idempotency,
    IncidentDisposition,
    Misconfigured,
)
from tocsin.testing.conformance import ObjectChannelConformance, ObjectChannelHarness
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


class TestIncidents(ObjectChannelConformance):
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
async def harness():
    async with TestIncidents().harness() as harness:
        yield harness


def the_record(harness: ObjectChannelHarness):
    [record] = harness.simulator.records.values()
    return record


async def test_a_record_has_what_the_operator_set(harness: ObjectChannelHarness):
    harness.use(assignee="b" * 32, fields={"category": "'security'", "caller_id": "'c' ~ 1"})
    event = harness.alert()
    receipt = await harness.bring(event)
    record = the_record(harness)
    assert (record["correlation_id"], record["correlation_display"]) == (event.key, "Tocsin")
    assert (record["impact"], record["urgency"], record["priority"]) == ("2", "1", "2")
    assert (record["assigned_to"], record["category"]) == ("b" * 32, "security")
    page = f"nav_to.do?uri=incident.do%3Fsys_id%3D{record['sys_id']}"
    assert receipt.remote_url == f"{harness.simulator.url}/{page}"


async def test_names_are_read_as_they_are_shown_where_that_is_asked_for(
    harness: ObjectChannelHarness,
):
    harness.use(fields={"assignment_group": "'Network'"}, options={"display_values": True})
    await harness.bring(harness.alert())
    assert the_record(harness)["assignment_group"] == GROUP["Network"]


async def test_a_priority_is_impact_and_urgency_or_itself(harness: ObjectChannelHarness):
    harness.use(priorities={"Medium": "3/2", "High": "1"})
    await harness.bring(harness.failed(1))
    assert the_record(harness)["priority"] == "4"
    await harness.bring(harness.disabled())
    assert the_record(harness)["priority"] == "1"


async def test_an_api_key_is_enough(harness: ObjectChannelHarness):
    harness.use(username=None, secret=API_KEY)
    await harness.bring(harness.alert())
    assert "Authorization" not in harness.simulator.requests[-1].headers


@pytest.mark.parametrize(
    "key", ["incident:7^ORactive=true", "a" * 101, "ä", "x\ny", "a,b", "javascript:x"]
)
def test_no_key_can_mean_more_than_itself_in_a_query(key):
    assert correlation_id(key).isalnum()
    assert len(correlation_id(key)) < 100
    assert correlation_id(f"incident:{'0' * 32}") == f"incident:{'0' * 32}"


async def test_a_correlation_id_that_cannot_be_asked_for_finds_nobody_elses_record(
    harness: ObjectChannelHarness,
):
    """ServiceNow ignores the condition and returns any record."""
    await harness.bring(harness.alert(number=1))
    harness.clock.advance(seconds=600)
    harness.simulator.hidden = {"correlation_id"}
    with pytest.raises(Misconfigured, match="cannot be found by their correlation_id"):
        await harness.attempt(harness.alert(number=2))
    [problem] = (await harness.channel.check()).problems
    assert problem.startswith("project: records of incident cannot be found")


async def test_a_journal_that_cannot_be_read_is_not_added_to(harness: ObjectChannelHarness):
    await harness.bring(harness.alert())
    harness.simulator.hidden = {"work_notes"}
    with pytest.raises(Misconfigured, match="work_notes of incident is hidden"):
        await harness.attempt(harness.completed("incident:7"))


async def test_what_a_data_policy_wants_reaches_the_operator(harness: ObjectChannelHarness):
    harness.use(options={})
    await harness.bring(harness.alert())
    words = r"returned 403: Operation Failed: Data Policy Exception: .* mandatory: Close code"
    with pytest.raises(Misconfigured, match=words) as caught:
        await harness.channel.close(the_record(harness)["sys_id"], "over")
    assert not isinstance(caught.value, CredentialsRefused)


async def test_closing_says_why_and_how(harness: ObjectChannelHarness):
    harness.use(options={**CLOSING, "close_notes": "As agreed."})
    await harness.bring(harness.alert())
    await harness.channel.close(the_record(harness)["sys_id"], "over")
    record = the_record(harness)
    assert (record["state"], record["close_code"]) == ("6", "Solution provided")
    assert (record["close_notes"], record["journal"]) == ("As agreed.", ["over"])


async def test_a_record_is_closed_as_the_disposition_of_its_incident_says(
    harness: ObjectChannelHarness,
):
    own = {"duplicate": {"state": "8", "code": "Duplicate"}}
    closing = {"close_when": "data.title", "follow_changes": True}
    harness.use(**closing, options={**CLOSING, "close_as": own})
    await harness.bring(harness.alert())
    await harness.channel.close_as(
        the_record(harness)["sys_id"], "over", IncidentDisposition.DUPLICATE
    )
    record = the_record(harness)
    assert (record["state"], record["close_code"]) == ("8", "Duplicate")
    assert not (await harness.channel.check()).problems
    twin = {"duplicate": {"code": "Twin"}}
    harness.use(options={**CLOSING, "close_as": twin})
    [problem] = (await harness.channel.check()).problems
    assert problem.startswith("options.close_as.duplicate: unknown code 'Twin'; use one of:")


async def test_a_record_that_takes_nothing_more_can_be_followed_by_another(
    harness: ObjectChannelHarness,
):
    harness.simulator.read_only_when_inactive = True
    await harness.bring(harness.alert())
    the_record(harness).update(state="7", active="false")
    with pytest.raises(CredentialsRefused, match="ACL Exception"):
        await harness.attempt(harness.completed("incident:7"))
    harness.use(options={"new_after_close": True})
    await harness.bring(harness.completed("incident:7"))
    assert [record["active"] for record in harness.simulator.records.values()] == ["false", "true"]


async def test_an_instance_that_hibernates_is_named(harness: ObjectChannelHarness):
    harness.simulator.hibernates = True
    with pytest.raises(Broken, match="hibernating developer instances"):
        await harness.channel.check()


async def test_an_answer_that_was_cancelled_is_no_answer(harness: ObjectChannelHarness):
    harness.simulator.is_cancelled = True
    with pytest.raises(Broken, match="incomplete response from ServiceNow: Transaction cancelled"):
        await harness.attempt(harness.alert())


async def test_the_check_names_everything_at_once(harness: ObjectChannelHarness):
    harness.use(
        labels=["soc"],
        issue_type="Task",
        priorities={"High": "2/"},
        close_recovered=True,
        options={"close_code": "Solved"},
    )
    problems = (await harness.channel.check()).problems
    assert [problem.partition(":")[0] for problem in problems] == [
        "labels",
        "issue_type",
        "priorities.High",
        "options.close_code",
    ]
    assert "use one of: Duplicate, Solution provided" in problems[-1]


async def test_the_check_says_what_it_cannot_know(harness: ObjectChannelHarness):
    assert "mandatory in forms: caller_id" in (await harness.channel.check()).detail
    harness.simulator.lacks = {"personalize"}
    harness.use(close_recovered=True, options={})
    health = await harness.channel.check()
    assert health.detail == "incident is readable; write access was not tested"
    assert [problem.partition(":")[0] for problem in health.problems] == ["options.close_code"]


@pytest.mark.parametrize(
    ("project", "words"),
    [("Incident Table", "is not a table name"), ("nothing", "Invalid table nothing")],
)
async def test_the_check_names_a_table_that_is_none(harness: ObjectChannelHarness, project, words):
    harness.use(project=project)
    [problem] = (await harness.channel.check()).problems
    assert words in problem
