"""Reply to the last message of a continued session."""

from __future__ import annotations

from collections.abc import Iterator

from tocsin import Report, Statement
from tocsin_plugins.investigator.assessment import Conclusion
from tocsin_plugins.investigator.evidence import list_evidence
from tocsin_plugins.investigator.interpretation import FollowUp
from tocsin_plugins.investigator.phrases import (
    IS,
    WAS,
    count_noun,
    format_time,
    join_names,
    name_entity,
    name_incidents,
    state,
)
from tocsin_plugins.investigator.report.summary import answer_intents, state_verdict

_TIMELINE_LINES = 20
_MOST = 5
_MOST_FINDINGS = 10


def build_reply(conclusion: Conclusion, report: Report) -> tuple[Statement, ...]:
    """Return the answer to a follow-up and the changes; nothing for the first message."""
    if len(conclusion.inquiry.messages) <= 1:
        return ()
    wishes = conclusion.case.scope.wishes
    return (
        *_describe_interpretation(conclusion),
        *(_explain_score(conclusion) if FollowUp.EXPLAIN_SCORE in wishes else ()),
        *(_quote_timeline(conclusion, report) if FollowUp.SHOW_TIMELINE in wishes else ()),
        *answer_intents(conclusion),
        *describe_changes(conclusion, report),
    )


def describe_changes(conclusion: Conclusion, report: Report) -> Iterator[Statement]:
    """Yield the changes since the previous report, or that there are none."""
    previous = conclusion.inquiry.previous
    if previous is None:
        yield state_verdict(conclusion)
        return
    found = [
        *_list_judgement_changes(conclusion, previous),
        *_list_incident_changes(conclusion, previous),
        *_list_entity_changes(conclusion, report, previous),
        *_list_finding_changes(conclusion, previous),
    ]
    yield from found or [state("nothing has changed since the previous report", conclusion.scored)]


def _describe_interpretation(conclusion: Conclusion) -> Iterator[Statement]:
    """Yield how the last message was interpreted, and which names in it are unknown."""
    scope = conclusion.case.scope
    if scope.misunderstood:
        yield state(scope.misunderstood, *conclusion.understood)
    if scope.taken:
        yield state(f"understood as: {join_names(scope.taken)}", *conclusion.understood)
    if scope.nothing_left:
        yield state("nothing is left to investigate", *conclusion.understood)
    for gap in conclusion.gaps:
        if " is unknown. Similar names: " in gap.text:
            yield gap


def _explain_score(conclusion: Conclusion) -> Iterator[Statement]:
    parts = conclusion.contributions
    number = count_noun(len(parts), "contribution")
    asked = conclusion.case.scope.score
    other = f", not {asked:g}" if asked is not None and asked != conclusion.score else ""
    text = f"the score is {conclusion.score:g}{other}. It is the sum of {number}"
    text = f"{text}, limited to the range 0 to 100"
    yield state(text, conclusion.scored)
    for part in parts:
        text = f"“{part.name}” contributes {part.points:+g} points: {part.statement.text}"
        yield Statement(text, part.statement.evidence)


def _quote_timeline(conclusion: Conclusion, report: Report) -> Iterator[Statement]:
    lines = report.timeline[:_TIMELINE_LINES]
    if not lines:
        yield state("the timeline is empty", conclusion.scored)
    for line in lines:
        yield state(f"{format_time(line.at)}: {line.statement.text}", *line.statement.evidence)
    if left := len(report.timeline) - len(lines):
        yield state(f"the timeline has {count_noun(left, 'more line')}", conclusion.scored)


def _list_judgement_changes(conclusion: Conclusion, previous: Report) -> Iterator[Statement]:
    if conclusion.score != previous.risk_score:
        way = "rose" if conclusion.score > previous.risk_score else "fell"
        text = f"the risk score {way} from {previous.risk_score:g} to {conclusion.score:g}"
        yield state(text, conclusion.scored)
    if conclusion.verdict is not previous.verdict:
        text = f"the verdict changed from {previous.verdict.value} to {conclusion.verdict.value}"
        yield state(text, conclusion.scored)
    if conclusion.confidence is not previous.confidence:
        was, now = previous.confidence.value, conclusion.confidence.value
        yield state(f"the confidence changed from {was} to {now}", conclusion.scored)


def _list_incident_changes(conclusion: Conclusion, previous: Report) -> Iterator[Statement]:
    now = set(conclusion.case.incidents)
    if new := sorted(now - set(previous.incidents)):
        joined = f"{name_incidents(new)} {WAS[len(new) == 1]} added"
        yield state(joined, *(f"incident:{number}" for number in new))
    if gone := sorted(set(previous.incidents) - now):
        text = f"{name_incidents(gone)} {IS[len(gone) == 1]} no longer examined"
        yield state(text, conclusion.scored)


def _list_entity_changes(
    conclusion: Conclusion, report: Report, previous: Report
) -> Iterator[Statement]:
    before = {assessment.entity for assessment in previous.entities}
    new = [entity for entity in report.entities if entity.entity not in before]
    if new:
        names = join_names([name_entity(assessment.entity) for assessment in new], _MOST)
        evidence = list_evidence(said for each in new for said in each.statements)
        number = count_noun(len(new), "new entity", "new entities")
        yield state(f"{number}: {names}", *evidence, conclusion.scored)
    now = {assessment.entity for assessment in report.entities}
    if gone := [entity.entity for entity in previous.entities if entity.entity not in now]:
        names = join_names([name_entity(entity) for entity in gone], _MOST)
        yield state(f"{names} {IS[len(gone) == 1]} no longer examined", conclusion.scored)


def _list_finding_changes(conclusion: Conclusion, previous: Report) -> Iterator[Statement]:
    before = {(finding.kind, finding.title) for finding in previous.findings}
    new = [
        finding for finding in conclusion.findings if (finding.kind, finding.title) not in before
    ]
    for finding in new[:_MOST_FINDINGS]:
        evidence = list_evidence(finding.statements)
        yield state(f"new finding: {finding.title} ({finding.id})", *evidence)
    if left := len(new[_MOST_FINDINGS:]):
        yield state(f"{count_noun(left, 'more finding')} {IS[left == 1]} new", conclusion.scored)
    now = {(finding.kind, finding.title) for finding in conclusion.findings}
    gone = [finding for finding in previous.findings if (finding.kind, finding.title) not in now]
    for finding in gone[:_MOST_FINDINGS]:
        yield state(f"no longer found: {finding.title}", conclusion.scored)
    if left := len(gone[_MOST_FINDINGS:]):
        text = f"{count_noun(left, 'more finding')} {IS[left == 1]} no longer found"
        yield state(text, conclusion.scored)
