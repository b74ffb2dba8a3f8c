"""Jira trackers: channel conformance and specific behavior."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import tocsin_templates
from tocsin import ChangeType, CredentialsRefused, Event, Idempotency, Misconfigured, TryLater
from tocsin.contracts import load_contract
from tocsin.testing.conformance import ObjectChannelConformance, ObjectChannelHarness
from tocsin_plugins.ticketing import Ticketing
from tocsin_plugins.ticketing.http_tracker import hash_key
from tocsin_plugins.ticketing.jira.health import USUAL_PRIORITIES

from .jira_simulator import (
    ACCOUNT,
    PROJECT,
    TOKEN,
    CloudSimulator,
    DataCenterSimulator,
    JiraSimulator,
)

ASSIGNEE = {"jira-cloud": "5b10a2844c20165700ede21g", "jira-data-center": "kim"}


class JiraSuite(ObjectChannelConformance):
    channel = Ticketing
    idempotency = Idempotency.SEARCH
    permissions = JiraSimulator.permissions
    tracker: str

    def settings(self, url):
        return {"tracker": self.tracker, "url": url, "secret": TOKEN, "project": PROJECT}

    def template_paths(self):
        return list(map(Path, tocsin_templates.tocsin_template_paths()))


class TestJiraCloud(JiraSuite):
    simulator = CloudSimulator
    tracker = "jira-cloud"

    def settings(self, url):
        return {**super().settings(url), "username": ACCOUNT}


class TestJiraDataCenter(JiraSuite):
    simulator = DataCenterSimulator
    tracker = "jira-data-center"


@pytest.fixture(params=[TestJiraCloud, TestJiraDataCenter])
def suite(request):
    return request.param()


@pytest.fixture
async def harness(suite):
    async with suite.harness() as harness:
        yield harness


@pytest.fixture
async def cloud():
    async with TestJiraCloud().harness() as harness:
        yield harness


def the_issue(harness: ObjectChannelHarness):
    [issue] = harness.simulator.issues.values()
    return issue


def field(harness: ObjectChannelHarness, identifier: str, **facts):
    usual = {"fieldId": identifier, "name": identifier, "required": False}
    harness.simulator.screen[identifier] = {**usual, **facts}


async def test_an_issue_has_what_the_operator_set(harness: ObjectChannelHarness):
    field(harness, "customfield_10042")
    person = ASSIGNEE[harness.channel.settings.tracker]
    harness.use(
        issue_type="Incident",
        labels=["soc"],
        assignee=person,
        priorities={"High": "Highest"},
        fields={"customfield_10042": "{'value': data.provider}"},
    )
    event = harness.alert()
    receipt = await harness.bring(event)
    fields = the_issue(harness)["fields"]
    assert fields["labels"] == [hash_key(event.key), "tocsin", "soc"]
    assert fields["issuetype"] == {"name": "Incident"}
    assert (fields["assignee"], fields["priority"]) == (
        harness.simulator.person(person),
        {"name": "Highest"},
    )
    assert fields["customfield_10042"] == {"value": event.data["provider"]}
    assert receipt.remote_url == f"{harness.simulator.url}/browse/SEC-1"


async def test_the_reason_why_an_issue_is_not_taken_reaches_the_operator(
    harness: ObjectChannelHarness,
):
    field(harness, "customfield_10043", required=True, name="Affected " + "site " * 100)
    reason = (
        r"POST /rest/api/./issue returned 400: customfield_10043: Affected site.* is required\."
    )
    with pytest.raises(Misconfigured, match=reason):
        await harness.attempt(harness.alert())


async def test_the_check_names_everything_at_once(harness: ObjectChannelHarness):
    field(harness, "customfield_10043", required=True, name="Affected site")
    del harness.simulator.screen["labels"]
    harness.use(
        assignee="nobody-here",
        labels=["two words"],
        priorities={"High": "P1"},
        fields={"customfield_9": "'x'", "labels": "['x']"},
    )
    problems = (await harness.channel.check()).problems
    wanted = (
        "labels: 'two words'",
        "fields.labels",
        "the field labels is not on the create screen",
        "the field customfield_9 is not on the create screen",
        "the field Affected site is required: set fields.customfield_10043",
        "priorities.High: unknown priority P1",
        "assignee: nobody-here",
    )
    assert [
        beginning
        for beginning in wanted
        if not any(problem.startswith(beginning) for problem in problems)
    ] == []
    assert len(problems) == len(wanted)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"project": "NONE"}, "project: NONE does not exist"),
        (
            {"issue_type": "Alarm"},
            "issue_type: SEC has no issue type Alarm; use one of: Task, Incident",
        ),
        (
            {"options": {"resolution": "Fixed"}},
            "options.resolution: unknown resolution Fixed; use one of: Done, Duplicate",
        ),
        (
            {
                "close_when": "data.disposition",
                "follow_changes": True,
                "options": {"close_as": {"duplicate": {"resolution": "Fixed"}}},
            },
            "options.close_as.duplicate: unknown resolution Fixed; use one of: Done, Duplicate",
        ),
    ],
)
async def test_the_check_names_what_is_not_there(harness: ObjectChannelHarness, settings, problem):
    harness.use(**settings)
    [found] = (await harness.channel.check()).problems
    assert found.startswith(problem)


async def test_a_resolution_is_known_in_any_letter_case(harness: ObjectChannelHarness):
    harness.use(options={"resolution": "duplicate"})
    assert not (await harness.channel.check()).problems


async def test_a_project_without_priorities_is_none_of_a_problem(harness: ObjectChannelHarness):
    del harness.simulator.screen["priority"]
    [problem] = (await harness.channel.check()).problems
    assert "set_priority = false" in problem
    harness.use(options={"set_priority": False})
    assert not (await harness.channel.check()).problems
    await harness.bring(harness.alert())
    assert "priority" not in the_issue(harness)["fields"]


async def test_an_issue_that_was_moved_is_found_by_its_label(harness: ObjectChannelHarness):
    event = harness.alert()
    await harness.bring(event, remember=False)
    issue = harness.simulator.issues.pop("SEC-1")
    harness.simulator.issues["OPS-4"] = {**issue, "key": "OPS-4"}
    harness.clock.advance(seconds=600)
    assert (await harness.bring(event)).remote_id == "OPS-4"


async def test_a_report_that_is_behind_a_page_of_comments_is_not_repeated(
    harness: ObjectChannelHarness,
):
    await harness.bring(harness.alert())
    report = harness.completed("incident:7")
    await harness.bring(report)
    for text in ("first", "second", "third"):
        await harness.channel.add_note("SEC-1", "Somebody", text)
    await harness.bring(report)
    assert len(the_issue(harness)["comments"]) == 4


async def test_a_long_report_is_shortened_with_its_link_and_its_event(
    harness: ObjectChannelHarness,
):
    await harness.bring(harness.alert())
    text = "\n\n".join(f"Line **{number}** of `{'a.b-c' * 20}`" for number in range(250))
    signed = f"{text}\n\n[Open in Tocsin](https://tocsin.example.com/x)\n\nTocsin event evt_1"
    await harness.channel.add_note("SEC-1", "Report", signed)
    [comment] = the_issue(harness)["comments"]
    said = harness.simulator.words(comment["body"])
    assert "shortened" in said
    assert "https://tocsin.example.com/x" in json.dumps(comment["body"])
    assert said.endswith("Tocsin event evt_1")
    assert len(json.dumps(comment["body"])) > 30_000


async def test_comments_are_kept_from_customers_where_that_is_asked_for(
    harness: ObjectChannelHarness,
):
    harness.use(options={"internal_comments": True})
    await harness.bring(harness.alert())
    await harness.bring(harness.completed("incident:7"))
    [comment] = the_issue(harness)["comments"]
    assert comment["properties"] == [{"key": "sd.public.comment", "value": {"internal": True}}]


async def test_the_priority_follows_what_happens_while_an_issue_is_open(
    harness: ObjectChannelHarness,
):
    await harness.bring(harness.failed(1))
    assert the_issue(harness)["fields"]["priority"] == {"name": "Medium"}
    harness.simulator.conflicts = 1
    await harness.bring(harness.disabled())
    assert the_issue(harness)["fields"]["priority"] == {"name": "High"}


async def test_a_failure_after_the_issue_was_closed_is_another_issue(harness: ObjectChannelHarness):
    await harness.bring(harness.failed(1))
    await harness.channel.close("SEC-1", "over")
    await harness.bring(harness.failed(2))
    assert [object_.is_open for object_ in harness.objects] == [False, True]


async def test_what_a_person_changes_at_the_same_time_passes_by_itself(
    harness: ObjectChannelHarness,
):
    await harness.bring(harness.failed(1))
    harness.simulator.conflicts = 1
    with pytest.raises(TryLater, match="SEC-1 returned 409"):
        await harness.attempt(harness.disabled())


async def test_the_transition_that_closes_is_the_one_that_is_named(harness: ObjectChannelHarness):
    harness.simulator.transitions.append(JiraSimulator.transition("41", "False alarm", "done"))
    harness.use(options={"close_transition": "false alarm", "resolution": "Duplicate"})
    await harness.bring(harness.alert())
    await harness.channel.close("SEC-1", "since it was none")
    fields = the_issue(harness)["fields"]
    assert (fields["status"]["name"], fields["resolution"]) == (
        "False alarm",
        {"name": "Duplicate"},
    )
    assert harness.objects[0].notes == ["since it was none"]


async def test_an_issue_is_closed_as_the_disposition_of_its_incident_says(
    harness: ObjectChannelHarness,
):
    harness.simulator.transitions.append(JiraSimulator.transition("41", "Reject", "done"))
    own = {"duplicate": {"resolution": "Duplicate"}, "false-positive": {"transition": "Reject"}}
    options = {"close_transition": "Resolve", "resolution": "Done", "close_as": own}
    harness.use(close_when="data.disposition", follow_changes=True, options=options)
    await harness.bring(harness.alert())
    ends = {}
    for disposition in ("true-positive", "duplicate", "false-positive"):
        reopened = JiraSimulator.transition("1", "Open", "new")["to"]
        the_issue(harness)["fields"].update(status=reopened, resolution=None)
        await harness.bring(with_disposition(harness.alert(), disposition))
        fields = the_issue(harness)["fields"]
        ends[disposition] = fields["status"]["name"], fields["resolution"]["name"]
    assert ends == {
        "true-positive": ("Resolve", "Done"),
        "duplicate": ("Resolve", "Duplicate"),
        "false-positive": ("Reject", "Done"),
    }


def with_disposition(event: Event, disposition: str) -> Event:
    """Return the event that changes the incident's disposition."""
    changes = {"disposition": {"from": None, "to": disposition}}
    data = {**event.data, "disposition": disposition, "changes": changes}
    return replace(event, event_type=ChangeType.INCIDENT_CHANGED, data=data)


@pytest.mark.parametrize(
    ("transitions", "reason"),
    [
        (
            [
                JiraSimulator.transition(
                    "1", "End", "done", cause={"required": True, "name": "Cause"}
                )
            ],
            r"closing SEC-1 with the transition End requires Cause \(cause\)",
        ),
        (
            [JiraSimulator.transition("1", "Start", "new")],
            "SEC-1 has no transition to a status in the category Done; available: Start",
        ),
    ],
)
async def test_what_keeps_an_issue_open_is_named(
    harness: ObjectChannelHarness, transitions, reason
):
    harness.simulator.transitions = transitions
    await harness.bring(harness.alert())
    with pytest.raises(Misconfigured, match=reason):
        await harness.channel.close("SEC-1", "over")


async def test_an_issue_that_someone_else_closes_first_is_closed(harness: ObjectChannelHarness):
    await harness.bring(harness.alert())
    harness.simulator.someone_closes_first = True
    await harness.channel.close("SEC-1", "over")
    assert not harness.objects[0].is_open


HARMFUL = "[~admin] {color:red}x{color} !http://example.com/a.png! [a|http://example.com] bq. SEC-1"


async def bring_harmful(harness: ObjectChannelHarness):
    event = harness.alert(title=HARMFUL)
    known = {"description": HARMFUL, "source_url": "https://siem.example.com/7]!x{y}"}
    incident = {**event.context["incident"], **known}
    await harness.bring(replace(event, context={"incident": incident}))
    return the_issue(harness)["fields"]["description"]


async def test_what_others_wrote_is_text_in_a_document(cloud: ObjectChannelHarness):
    description = await bring_harmful(cloud)
    links = set(re.findall(r'"href": "([^"]+)"', json.dumps(description)))
    assert {urlsplit(link).hostname for link in links} == {"tocsin.example.com", "siem.example.com"}
    assert "[~admin] {color:red}" in cloud.simulator.words(description)


async def test_what_others_wrote_is_text_in_wiki_markup():
    async with TestJiraDataCenter().harness() as harness:
        description = await bring_harmful(harness)
    links = re.findall(r"\[[^\]]*\]", description)
    assert [link.partition("|")[0] for link in links] == ["[Open in Tocsin", "[Open in SIEM"]
    assert not re.search(r"[~!]|\{[^{]|bq\.|SEC-1", description.replace("{{", "").replace("}}", ""))


async def test_nobody_who_is_signed_in_is_no_reason_to_make_another_issue(
    cloud: ObjectChannelHarness,
):
    """Without a valid sign-in, Jira Cloud responds as if no issue existed."""
    await cloud.bring(cloud.failed(1))
    cloud.use(username="someone-else@example.com")
    with pytest.raises(CredentialsRefused):
        await cloud.attempt(cloud.failed(2))
    with pytest.raises(CredentialsRefused):
        await cloud.attempt(cloud.alert())
    assert len(cloud.objects) == 1


async def test_paragraphs_become_documents_as_they_are(cloud: ObjectChannelHarness):
    field(cloud, "customfield_10050")
    cloud.use(
        fields={"customfield_10050": "'[x](http://example.com)\\n\\n' ~ data.provider"},
        options={"paragraph_fields": ["customfield_10050"]},
    )
    await cloud.bring(cloud.alert())
    written = the_issue(cloud)["fields"]["customfield_10050"]
    assert cloud.simulator.words(written).split() == ["[x](http://example.com)", "test"]
    assert "href" not in json.dumps(written)


async def test_a_token_with_scopes_has_links_to_the_site(cloud: ObjectChannelHarness):
    cloud.use(options={"site": "https://acme.atlassian.net"})
    assert (
        await cloud.bring(cloud.alert())
    ).remote_url == "https://acme.atlassian.net/browse/SEC-1"


async def test_the_check_names_an_account_that_is_missing(cloud: ObjectChannelHarness):
    cloud.use(username=None)
    assert (await cloud.channel.check()).problems[0].startswith("username: ")


def test_the_names_of_priorities_are_those_of_the_contract():
    [folder] = TestJiraCloud().template_paths()
    contract = load_contract([folder], "jira")
    assert contract is not None
    assert contract.severity == USUAL_PRIORITIES
