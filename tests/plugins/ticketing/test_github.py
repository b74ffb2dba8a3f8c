"""The contract of a channel, kept with GitHub, and what only GitHub has."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from tocsin import Idempotency, Misconfigured
from tocsin.testing.conformance import ChannelConformance, ChannelHarness
from tocsin.testing.conformance.channel_events import FOUND_ADDRESS, REPORT_TITLE
from tocsin_plugins.ticketing import Ticketing

from .github_simulator import REPOSITORY, TOKEN, GitHubSimulator

# https://docs.github.com/en/get-started/writing-on-github/working-with-advanced-formatting/autolinked-references-and-urls
REFERENCE = re.compile(r"(?<![\w\\])(?:[\w-]+/[\w-]+#|#|GH-)\d", re.IGNORECASE)


class TestGitHub(ChannelConformance):
    channel = Ticketing
    simulator = GitHubSimulator
    idempotency = Idempotency.SEARCH
    permissions = GitHubSimulator.permissions

    def settings(self, url):
        return {"tracker": "github", "url": url, "secret": TOKEN, "project": REPOSITORY}


@pytest.fixture
async def lab():
    own = {
        "labels": ["soc"],
        "assignee": "octocat",
        "priorities": {"High": "P1"},
        "fields": {"milestone": "1 if data.provider == 'test' else 2"},
    }
    async with TestGitHub().harness(**own) as lab:
        yield lab


async def test_an_issue_has_what_the_operator_set(lab: ChannelHarness):
    receipt = await lab.bring(lab.alert())
    [issue] = lab.simulator.issues.values()
    assert issue["labels"] == ["tocsin", "P1", "soc"]
    assert (issue["assignees"], issue["milestone"]) == (["octocat"], 1)
    assert receipt.remote_url == f"{lab.simulator.url}/{REPOSITORY}/issues/{issue['number']}"


async def test_the_check_names_an_assignee_who_cannot_be_assigned(lab: ChannelHarness):
    lab.use(assignee="nobody-here")
    [problem] = (await lab.channel.check()).problems
    assert problem.startswith("assignee: nobody-here")


async def test_an_assignee_who_cannot_be_assigned_waits_for_the_operator(lab: ChannelHarness):
    lab.use(assignee="nobody-here")
    with pytest.raises(Misconfigured, match="Validation Failed"):
        await lab.attempt(lab.alert())


async def test_a_repository_that_is_not_there_waits_for_the_operator(lab: ChannelHarness):
    lab.use(project="soc/moved")
    with pytest.raises(Misconfigured, match="404"):
        await lab.attempt(lab.alert())


async def test_titles_can_mention_nobody(lab: ChannelHarness):
    await lab.bring(lab.alert(title="@everyone see #1 and [this](https://example.com)"))
    [issue] = lab.simulator.issues.values()
    assert "@everyone" not in issue["body"]
    assert "](https://example.com)" not in issue["body"]


async def test_an_issue_is_found_that_the_search_does_not_know_yet(lab: ChannelHarness):
    lab.simulator.search_delay = timedelta(hours=1)
    alert = lab.alert()
    await lab.bring(alert, remember=False)
    lab.clock.advance(minutes=5)
    await lab.bring(alert)
    assert len(lab.objects) == 1


async def test_an_issue_is_found_that_is_older_than_the_newest_hundred(lab: ChannelHarness):
    alert = lab.alert()
    await lab.bring(alert, remember=False)
    lab.simulator.file(100)
    lab.clock.advance(hours=1)
    await lab.bring(alert)
    assert len(lab.objects) == 101


@pytest.mark.parametrize("gone", ["moved", "deleted"])
async def test_an_issue_that_was_moved_or_deleted_is_made_anew(lab: ChannelHarness, gone):
    first = await lab.bring(lab.failed(1))
    getattr(lab.simulator, gone).add(first.remote_id)
    second = await lab.bring(lab.failed(2))
    assert second.remote_id != first.remote_id
    assert len(lab.objects) == 2


@pytest.mark.parametrize("earlier", [99, 100, 150, 250])
async def test_a_comment_is_found_on_whichever_page_it_is(lab: ChannelHarness, earlier):
    alert, report = lab.alert(), lab.completed("incident:7")
    await lab.bring(alert)
    [issue] = lab.simulator.issues.values()
    issue["comments"] += [{"body": f"comment {number}"} for number in range(earlier)]
    await lab.bring(report)
    issue["comments"] += [{"body": f"comment {number}"} for number in range(60)]
    await lab.bring(report)
    assert len(issue["comments"]) == earlier + 61


@pytest.mark.parametrize(
    ("url", "page"),
    [
        ("https://api.github.com", "https://github.com"),
        ("https://github.example.com/api/v3", "https://github.example.com"),
        ("https://github.example.com:8443/api/v3", "https://github.example.com:8443"),
    ],
)
async def test_a_link_leads_to_the_page_and_not_to_the_api(lab: ChannelHarness, url, page):
    lab.use(url=url)
    assert lab.channel.link("5") == f"{page}/{REPOSITORY}/issues/5"


async def test_what_shall_not_comment_does_not(lab: ChannelHarness):
    lab.use(comment_on=["investigation-failed"])
    await lab.bring(lab.alert())
    await lab.bring(lab.completed("incident:7"))
    assert [object_.notes for object_ in lab.objects] == [[]]
    await lab.bring(lab.failed(1))
    await lab.bring(lab.failed(2))
    assert [len(object_.notes) for object_ in lab.objects] == [0, 1]


@pytest.mark.parametrize("attached", [True, False])
async def test_a_comment_has_the_whole_report_or_its_summary(lab: ChannelHarness, attached):
    lab.use(attach_report=attached)
    await lab.bring(lab.alert())
    await lab.bring(lab.completed("incident:7"))
    [comment] = lab.objects[0].notes
    assert REPORT_TITLE in comment
    assert "Open in Tocsin" in comment
    assert (FOUND_ADDRESS in comment) is attached


async def test_fields_and_priority_are_brought_up_to_date(lab: ChannelHarness):
    alert = lab.alert()
    await lab.bring(alert)
    [issue] = lab.simulator.issues.values()
    issue |= {"milestone": 9, "labels": ["severity: low", "mine", "tocsin"]}
    await lab.bring(alert)
    assert issue["milestone"] == 1
    assert sorted(issue["labels"]) == ["P1", "mine", "soc", "tocsin"]


async def test_an_issue_is_closed_as_the_operator_calls_it_once_a_comment_says_why(
    lab: ChannelHarness,
):
    lab.use(close_when="event_type == 'incident-alert'", options={"closed_as": "not_planned"})
    await lab.bring(lab.alert())
    [issue] = lab.simulator.issues.values()
    assert (issue["state"], issue["state_reason"]) == ("closed", "not_planned")
    assert [comment["body"] for comment in issue["comments"]] == [
        "Closed by Tocsin, as its configuration has it."
    ]


async def test_no_text_of_others_refers_to_another_issue(lab: ChannelHarness):
    text = "see #1, GH-1, gh-2 and example/soc#3"
    alert = lab.alert(title=text)
    alert.context["incident"]["description"] = text
    await lab.bring(alert)
    await lab.bring(lab.completed("incident:7", title=text))
    [issue] = lab.simulator.issues.values()
    for written in (issue["body"], issue["comments"][0]["body"]):
        assert "see" in written
        assert not REFERENCE.search(written)
