"""Follow-up messages and their replies."""

from dataclasses import replace

import pytest
from investigator_cases import CASES
from investigator_world import World, ago, event, incident, investigate, ip, says, user

A, B = ip("203.0.113.1"), ip("203.0.113.2")
WORLD = World(
    incidents=[
        incident(1, "first", entities=(A, user("alice"))),
        incident(2, "second", occurred_at=ago(days=20), entities=(A, user("bob"))),
        incident(3, "third", entities=(B,)),
    ]
)


async def continued(world, *messages):
    previous, _ = await investigate(world, *messages[:-1])
    report, client = await investigate(world, *messages, previous=previous)
    cited = {reference for statement in report.reply for reference in statement.evidence}
    assert cited <= client.references
    return report


async def test_a_query_that_is_not_continued_has_no_reply():
    report, _ = await investigate(WORLD, "incident 1")
    assert report.reply == ()


async def test_a_longer_time_brings_more_in():
    report = await continued(WORLD, "incident 1", "last 30 days")
    assert report.incidents == (1, 2)
    assert says(report.reply, "Incident 2 was added")


async def test_only_narrows_what_is_looked_at():
    report = await continued(WORLD, "incidents 1 and 3", "only incident 3")
    assert report.incidents == (3,)
    assert says(report.reply, "Incident 1 is no longer examined")


async def test_what_is_ignored_leaves():
    report = await continued(WORLD, "incident 1", "ignore 203.0.113.1")
    assert A not in {entity.entity for entity in report.entities}
    assert says(report.reply, "The address 203.0.113.1 is no longer examined")


async def test_the_score_is_explained_part_by_part():
    report = await continued(WORLD, "incident 1", "why is the score 24?")
    assert says(report.reply, f"The score is {report.risk_score:g}. It is the sum of")
    for part in report.contributions:
        assert says(report.reply, f"“{part.name}” contributes {part.points:+g} points")


async def test_the_timeline_is_shown():
    report = await continued(WORLD, "incident 1", "show the timeline")
    assert says(report.reply, "Incident 1 (Medium) began: first")


async def test_who_else_and_since_when_are_answered():
    report = await continued(WORLD, "203.0.113.1 last 30 days", "who else was affected?")
    assert says(report.reply, "Also involved: the user alice and the user bob")
    report = await continued(WORLD, "203.0.113.1 last 30 days", "when was it first seen?")
    assert says(report.reply, "in 2 incidents (latest: 1 and 2), first on 2026-10-19")


async def test_that_nothing_is_different_is_said():
    report = await continued(WORLD, "incident 1", "and now?")
    assert [statement.text for statement in report.reply] == [
        "Nothing has changed since the previous report."
    ]


async def test_a_change_of_the_score_is_said():
    truth = next(case for case in CASES if case.name == "a brute force that succeeded")
    quiet = replace(truth.world, events={"edge": ()})
    previous, _ = await investigate(quiet, truth.query)
    report, _ = await investigate(truth.world, truth.query, "what is new?", previous=previous)
    assert says(report.reply, f"rose from {previous.risk_score:g} to {report.risk_score:g}")
    assert says(report.reply, "The verdict changed from suspicious to malicious")
    assert says(report.reply, "New finding: A logon involving")


@pytest.mark.parametrize("text", ["blah fnord xyzzy", "x" * 20_000, "?"])
async def test_what_is_not_understood_is_admitted(text):
    previous, _ = await investigate(WORLD, "incident 1")
    report, client = await investigate(WORLD, "incident 1", text, previous=previous)
    assert says(report.reply, "The message was not understood: “")
    assert any("was not understood" in text for text, _ in client.concluded)
    assert report.incidents == previous.incidents


@pytest.mark.parametrize("text", ["start over", "reset", "forget everything else"])
async def test_a_session_can_start_over(text):
    report = await continued(WORLD, "incident 1", "incident 3", "last 30 days", text)
    assert report.incidents == (1,)
    assert says(report.reply, "Understood as: start over")


async def test_starting_over_with_something_else_keeps_to_that():
    report = await continued(WORLD, "incident 1", "forget everything, look at incident 3")
    assert report.incidents == (3,)


async def test_what_should_be_done_is_told():
    report = await continued(WORLD, "incident 1", "what should I do?")
    assert says(report.reply, "Recommended action: ")


async def test_who_somebody_is_is_told():
    report = await continued(WORLD, "incident 1", "who is bob?")
    assert says(report.reply, "The user bob appears only in incident 2")


async def test_a_message_in_another_language_says_how_it_was_taken():
    report = await continued(WORLD, "incident 1", "und was ist mit #3")
    assert says(report.reply, "Understood as: also investigate incident 3")
    assert report.incidents == (1, 3)


async def test_only_and_then_without_leaves_nothing():
    report = await continued(WORLD, "incidents 1 and 3", "only incident 3", "without incident 3")
    assert report.incidents == ()
    assert says(report.reply, "Nothing is left to investigate")


async def test_only_leaves_what_is_directly_its_own():
    shared = replace(WORLD, incidents=[*WORLD.incidents, incident(4, entities=(A, B))])
    before, _ = await investigate(shared, "incident 1", "go deeper")
    assert before.incidents == (1, 3, 4)
    report = await continued(shared, "incident 1", "go deeper", "only incident 1")
    assert report.incidents == (1,)
    assert {entity.entity for entity in report.entities} == {A, user("alice")}


async def test_a_score_that_is_another_is_said():
    report = await continued(WORLD, "incident 1", "why is the score 60?")
    assert says(report.reply, f"The score is {report.risk_score:g}, not 60. It is the sum of")


async def test_much_that_is_no_longer_found_is_counted():
    records = [
        event(
            "denied",
            ago(hours=number + 1, minutes=second / 60),
            ip(f"192.0.2.{number}"),
            user("eve"),
        )
        for number in range(9)
        for second in range(10)
    ]
    world = World(
        incidents=[
            incident(number + 1, entities=(ip(f"192.0.2.{number}"), user("eve")))
            for number in range(9)
        ],
        events={"edge": records},
    )
    report = await continued(world, "user eve", "only incident 1")
    gone = [statement for statement in report.reply if statement.text.startswith("No longer found")]
    assert len(gone) == 10
    assert says(report.reply, "no longer found.")


async def test_starting_over_can_leave_something_out():
    report = await continued(WORLD, "incidents 1 and 3", "incident 2", "start over, ignore #3")
    assert report.incidents == (1,)


async def test_a_bare_why_asks_for_the_score():
    report = await continued(WORLD, "incident 1", "why?")
    assert says(report.reply, "Understood as: explain the score")
    assert says(report.reply, "the sum of")
