"""GitLab tracker: channel conformance and specific behavior."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin import Idempotency, Misconfigured
from tocsin.testing.conformance import ObjectChannelConformance, ObjectChannelHarness
from tocsin_plugins.ticketing import Ticketing
from tocsin_plugins.ticketing.gitlab import escape_markdown

from .gitlab_simulator import _QUICK_ACTION, PROJECT, TOKEN, GitLabSimulator


class TestGitLab(ObjectChannelConformance):
    channel = Ticketing
    simulator = GitLabSimulator
    idempotency = Idempotency.SEARCH
    permissions = GitLabSimulator.permissions

    def settings(self, url):
        return {"tracker": "gitlab", "url": url, "secret": TOKEN, "project": PROJECT}


@pytest.fixture
async def harness():
    own = {
        "labels": ["soc"],
        "assignee": "j.doe",
        "issue_type": "incident",
        "priorities": {"High": "P1", "Critical": "P0"},
        "fields": {"weight": "3"},
    }
    async with TestGitLab().harness(**own) as harness:
        yield harness


async def test_an_issue_has_what_the_operator_set(harness: ObjectChannelHarness):
    receipt = await harness.bring(harness.alert())
    [issue] = harness.simulator.issues.values()
    assert issue["labels"] == ["tocsin", "P1", "soc"]
    assert (issue["assignee_ids"], issue["weight"], issue["issue_type"]) == ([7], 3, "incident")
    assert issue["confidential"]
    assert receipt.remote_url == f"{harness.simulator.url}/{PROJECT}/-/issues/{issue['iid']}"


async def test_an_issue_can_be_for_everybody_who_sees_the_project(harness: ObjectChannelHarness):
    harness.use(options={"confidential": False})
    await harness.bring(harness.alert())
    [issue] = harness.simulator.issues.values()
    assert not issue["confidential"]


async def test_the_label_of_a_severity_takes_the_place_of_the_one_before(
    harness: ObjectChannelHarness,
):
    alert = harness.alert()
    await harness.bring(alert)
    [issue] = harness.simulator.issues.values()
    issue["labels"] += ["severity::low", "P0", "mine"]
    await harness.bring(alert)
    assert sorted(issue["labels"]) == ["P1", "mine", "soc", "tocsin"]


async def test_what_was_made_long_ago_is_found_by_the_search(harness: ObjectChannelHarness):
    alert = harness.alert()
    await harness.bring(alert, remember=False)
    harness.clock.advance(days=3)
    await harness.bring(alert)
    assert len(harness.objects) == 1


async def test_an_issue_that_was_moved_is_made_anew(harness: ObjectChannelHarness):
    alert = harness.alert()
    await harness.bring(alert)
    [issue] = harness.simulator.issues.values()
    issue |= {"moved_to_id": 99, "state": "closed"}
    await harness.bring(alert)
    assert len(harness.objects) == 2


async def test_a_comment_is_found_behind_pages_that_are_not_full(harness: ObjectChannelHarness):
    await harness.bring(harness.failed(1))
    told = harness.failed(2)
    await harness.bring(told)
    [issue] = harness.simulator.issues.values()
    issue["notes"] += [f"comment {number}" for number in range(200)]
    await harness.bring(told)
    assert len(issue["notes"]) == 201


async def test_an_assignee_who_is_no_member_waits_for_the_operator(harness: ObjectChannelHarness):
    harness.use(assignee="j.do")
    with pytest.raises(Misconfigured, match=r"j\.do is not a member"):
        await harness.attempt(harness.alert())
    [problem] = (await harness.channel.check()).problems
    assert problem.startswith("assignee: j.do")


async def test_the_check_names_a_label_that_would_be_two(harness: ObjectChannelHarness):
    harness.use(labels=["a,b"])
    [problem] = (await harness.channel.check()).problems
    assert problem.startswith("labels")


@pytest.mark.parametrize("text", ["/close", "a\n/close", "a\r/close\n", "\r\n/assign @root"])
async def test_no_text_is_a_command(harness: ObjectChannelHarness, text):
    alert = harness.alert(title=text)
    alert.context["incident"]["description"] = text
    await harness.bring(alert)
    await harness.channel.tracker.add_note(harness.objects[0].id, f"Report\n\n{text}")
    [found] = harness.objects
    assert found.is_open
    assert "/" in found.notes[0]


@given(st.text(alphabet="/close\n\r \t\u2028\x85a", max_size=30))
def test_whatever_a_text_holds_it_has_no_quick_action(text):
    assert not _QUICK_ACTION.search(escape_markdown(text).replace("\r", ""))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('!1, other/project!2, %3, %"Next"', r'\!1, other/project\!2, \%3, \%"Next"'),
        (r"\!4, 5% of this!", r"\!4, 5% of this!"),
        (r"`a!1 %20`, `C:\`, !2", r"`a!1 %20`, `C:\`, \!2"),
        (r"no code: \`!5\`", r"no code: \`\!5\`"),
    ],
)
def test_no_word_of_others_refers_to_a_merge_request_or_a_milestone(text, wanted):
    assert escape_markdown(text) == wanted


async def test_titles_can_mention_nobody(harness: ObjectChannelHarness):
    await harness.bring(harness.alert(title="@all see #1 and [this](https://example.com)"))
    [issue] = harness.simulator.issues.values()
    assert "@all" not in issue["description"]
    assert "](https://example.com)" not in issue["description"]
