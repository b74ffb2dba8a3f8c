"""GitHub tracker: channel conformance and specific behavior."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from pydantic import ValidationError

from tocsin import Idempotency, IncidentDisposition, Misconfigured
from tocsin.testing import make_settings
from tocsin.testing.conformance import ObjectChannelConformance, ObjectChannelHarness
from tocsin.testing.conformance.channel_events import FOUND_ADDRESS, REPORT_TITLE
from tocsin_plugins.ticketing import Ticketing

from .github_simulator import REPOSITORY, TOKEN, GitHubSimulator

# https://docs.github.com/en/get-started/writing-on-github/working-with-advanced-formatting/autolinked-references-and-urls
REFERENCE = re.compile(r"(?<![\w\\])(?:[\w-]+/[\w-]+#|#|GH-)\d", re.IGNORECASE)


class TestGitHub(ObjectChannelConformance):
    channel = Ticketing
    simulator = GitHubSimulator
    idempotency = Idempotency.SEARCH
    permissions = GitHubSimulator.permissions

    def settings(self, url):
        return {"tracker": "github", "url": url, "secret": TOKEN, "project": REPOSITORY}


@pytest.fixture
async def harness():
    own = {
        "labels": ["soc"],
        "assignee": "octocat",
        "priorities": {"High": "P1"},
        "fields": {"milestone": "1 if data.provider == 'test' else 2"},
    }
    async with TestGitHub().harness(**own) as harness:
        yield harness


async def test_an_issue_has_what_the_operator_set(harness: ObjectChannelHarness):
    receipt = await harness.bring(harness.alert())
    [issue] = harness.simulator.issues.values()
    assert issue["labels"] == ["tocsin", "P1", "soc"]
    assert (issue["assignees"], issue["milestone"]) == (["octocat"], 1)
    assert receipt.remote_url == f"{harness.simulator.url}/{REPOSITORY}/issues/{issue['number']}"


async def test_the_check_names_an_assignee_who_cannot_be_assigned(harness: ObjectChannelHarness):
    harness.use(assignee="nobody-here")
    [problem] = (await harness.channel.check()).problems
    assert problem.startswith("assignee: nobody-here")


async def test_an_assignee_who_cannot_be_assigned_waits_for_the_operator(
    harness: ObjectChannelHarness,
):
    harness.use(assignee="nobody-here")
    with pytest.raises(Misconfigured, match="Validation Failed"):
        await harness.attempt(harness.alert())


async def test_a_repository_that_is_not_there_waits_for_the_operator(harness: ObjectChannelHarness):
    harness.use(project="soc/moved")
    with pytest.raises(Misconfigured, match="404"):
        await harness.attempt(harness.alert())


async def test_titles_can_mention_nobody(harness: ObjectChannelHarness):
    await harness.bring(harness.alert(title="@everyone see #1 and [this](https://example.com)"))
    [issue] = harness.simulator.issues.values()
    assert "@everyone" not in issue["body"]
    assert "](https://example.com)" not in issue["body"]


async def test_an_issue_is_found_that_the_search_does_not_know_yet(harness: ObjectChannelHarness):
    harness.simulator.search_delay = timedelta(hours=1)
    alert = harness.alert()
    await harness.bring(alert, remember=False)
    harness.clock.advance(minutes=5)
    await harness.bring(alert)
    assert len(harness.objects) == 1


async def test_an_issue_is_found_that_is_older_than_the_newest_hundred(
    harness: ObjectChannelHarness,
):
    alert = harness.alert()
    await harness.bring(alert, remember=False)
    harness.simulator.file(100)
    harness.clock.advance(hours=1)
    await harness.bring(alert)
    assert len(harness.objects) == 101


@pytest.mark.parametrize("gone", ["moved", "deleted"])
async def test_an_issue_that_was_moved_or_deleted_is_made_anew(harness: ObjectChannelHarness, gone):
    first = await harness.bring(harness.failed(1))
    getattr(harness.simulator, gone).add(first.remote_id)
    second = await harness.bring(harness.failed(2))
    assert second.remote_id != first.remote_id
    assert len(harness.objects) == 2


@pytest.mark.parametrize("earlier", [99, 100, 150, 250])
async def test_a_comment_is_found_on_whichever_page_it_is(harness: ObjectChannelHarness, earlier):
    alert, report = harness.alert(), harness.completed("incident:7")
    await harness.bring(alert)
    [issue] = harness.simulator.issues.values()
    issue["comments"] += [{"body": f"comment {number}"} for number in range(earlier)]
    await harness.bring(report)
    issue["comments"] += [{"body": f"comment {number}"} for number in range(60)]
    await harness.bring(report)
    assert len(issue["comments"]) == earlier + 61


@pytest.mark.parametrize(
    ("url", "page"),
    [
        ("https://api.github.com", "https://github.com"),
        ("https://github.example.com/api/v3", "https://github.example.com"),
        ("https://github.example.com:8443/api/v3", "https://github.example.com:8443"),
    ],
)
async def test_a_link_leads_to_the_page_and_not_to_the_api(
    harness: ObjectChannelHarness, url, page
):
    harness.use(url=url)
    assert harness.channel.link("5") == f"{page}/{REPOSITORY}/issues/5"


async def test_what_shall_not_comment_does_not(harness: ObjectChannelHarness):
    harness.use(comment_on=["investigation-failed"])
    await harness.bring(harness.alert())
    await harness.bring(harness.completed("incident:7"))
    assert [object_.notes for object_ in harness.objects] == [[]]
    await harness.bring(harness.failed(1))
    await harness.bring(harness.failed(2))
    assert [len(object_.notes) for object_ in harness.objects] == [0, 1]


@pytest.mark.parametrize("attached", [True, False])
async def test_a_comment_has_the_whole_report_or_its_summary(
    harness: ObjectChannelHarness, attached
):
    harness.use(attach_report=attached)
    await harness.bring(harness.alert())
    await harness.bring(harness.completed("incident:7"))
    [comment] = harness.objects[0].notes
    assert REPORT_TITLE in comment
    assert "Open in Tocsin" in comment
    assert (FOUND_ADDRESS in comment) is attached


async def test_fields_and_priority_are_brought_up_to_date(harness: ObjectChannelHarness):
    alert = harness.alert()
    await harness.bring(alert)
    [issue] = harness.simulator.issues.values()
    issue |= {"milestone": 9, "labels": ["severity: low", "mine", "tocsin"]}
    await harness.bring(alert)
    assert issue["milestone"] == 1
    assert sorted(issue["labels"]) == ["P1", "mine", "soc", "tocsin"]


async def test_an_issue_is_closed_as_the_operator_calls_it_once_a_comment_says_why(
    harness: ObjectChannelHarness,
):
    harness.use(close_when="event_type == 'incident-alert'", options={"closed_as": "not_planned"})
    await harness.bring(harness.alert())
    [issue] = harness.simulator.issues.values()
    assert (issue["state"], issue["state_reason"]) == ("closed", "not_planned")
    assert [comment["body"] for comment in issue["comments"]] == [
        "Closed by Tocsin, as configured."
    ]


@pytest.mark.parametrize(
    ("disposition", "state_reason"),
    [
        (IncidentDisposition.FALSE_POSITIVE, "not_planned"),
        (IncidentDisposition.DUPLICATE, "duplicate"),
        (IncidentDisposition.TRUE_POSITIVE, "completed"),
    ],
)
async def test_the_reason_for_closing_follows_the_disposition(
    harness: ObjectChannelHarness, disposition: IncidentDisposition, state_reason: str
):
    reasons = {"false-positive": "not_planned", "duplicate": "duplicate"}
    harness.use(close_when="data.disposition", follow_changes=True, options={"close_as": reasons})
    receipt = await harness.bring(harness.alert())
    await harness.channel.close_as(receipt.remote_id, "over", disposition)
    [issue] = harness.simulator.issues.values()
    assert (issue["state"], issue["state_reason"]) == ("closed", state_reason)


def test_reasons_for_dispositions_without_effect_are_refused():
    given = TestGitHub().settings("https://api.github.com")
    given |= {"options": {"close_as": {"duplicate": "duplicate"}}}
    closing = {"close_when": "data.title", "follow_changes": True}
    for name, value in closing.items():
        with pytest.raises(ValidationError, match=r"options\.close_as: also set close_when"):
            make_settings(Ticketing, **given, **{name: value})
    make_settings(Ticketing, **given, **closing)


async def test_no_text_of_others_refers_to_another_issue(harness: ObjectChannelHarness):
    text = "see #1, GH-1, gh-2 and example/soc#3"
    alert = harness.alert(title=text)
    alert.context["incident"]["description"] = text
    await harness.bring(alert)
    await harness.bring(harness.completed("incident:7", title=text))
    [issue] = harness.simulator.issues.values()
    for written in (issue["body"], issue["comments"][0]["body"]):
        assert "see `#1`" in written
        assert not REFERENCE.search(re.sub("`[^`]+`", "", written)), "in code there are none"
