"""Summary of a report: events, verdict with reasons, and the records examined."""

from __future__ import annotations

from collections.abc import Iterator

from tocsin import Contribution, Entity, EntityKind, Severity, Statement, Verdict
from tocsin_plugins.investigator.assessment import Conclusion
from tocsin_plugins.investigator.case import CaseFile, cite_incidents
from tocsin_plugins.investigator.correlation import state_opinion
from tocsin_plugins.investigator.evidence import list_evidence
from tocsin_plugins.investigator.interpretation import QueryIntent, find_words
from tocsin_plugins.investigator.narrative import (
    describe_incident,
    describe_pass,
    describe_reactions,
    describe_techniques,
)
from tocsin_plugins.investigator.phrases import (
    IS,
    count_noun,
    format_time,
    join_names,
    name_entity,
    name_incidents,
    name_pattern,
    shorten,
    state,
)
from tocsin_plugins.investigator.report.actions import build_actions
from tocsin_plugins.investigator.report.entities import describe_sighting

_TOP = 3
_MOST = 5


def build_summary(conclusion: Conclusion) -> tuple[Statement, ...]:
    """Return the sentences of the summary, each with its evidence."""
    case = conclusion.case
    if case.scope.is_empty:
        left = "nothing is left to investigate"
        text = left if case.scope.nothing_left else "the question does not say what to investigate"
        return (state(text, *conclusion.understood),)
    return (
        *_describe_incidents(case),
        *_state_nothing_found(conclusion),
        state_verdict(conclusion),
        *_list_main_findings(conclusion),
        *_list_near_findings(conclusion),
        *answer_intents(conclusion),
        _state_examined(conclusion),
        *_list_sessions(conclusion),
        *_state_gaps(conclusion),
    )


def build_title(conclusion: Conclusion) -> str:
    """Return the title of the report."""
    case = conclusion.case
    if case.scope.incidents and case.in_focus:
        records = [
            case.incidents[incident]
            for incident in case.scope.incidents
            if incident in case.incidents
        ]
        names = name_incidents([record.number for record in records], 3)
        alone = f": {shorten(records[0].title) or 'untitled'}" if len(records) == 1 else ""
        return f"Investigation of {names}{alone}"
    if case.scope.is_specific:
        matched = case.scope.patterns
        values = [shorten(pattern.text, 60) for pattern in matched]
        values += [
            shorten(entity.value, 60)
            for entity in case.scope.entities
            if not any(pattern.matches(entity) for pattern in matched)
        ]
        return f"Investigation of {join_names(values, 3)}"
    return f"Investigation: {shorten(conclusion.inquiry.messages[0], 80)}"


def state_verdict(conclusion: Conclusion) -> Statement:
    """Return the verdict, its confidence and the score in a sentence."""
    verdict, confidence = conclusion.verdict.value, conclusion.confidence.value
    score = f"the risk score is {conclusion.score:g} out of 100"
    several = len(conclusion.attackers)
    worst = f", based on the worst of {several} attackers" if several > 1 else ""
    text = f"the verdict is {verdict} with {confidence} confidence, and {score}{worst}"
    if not (main := _find_main_part(conclusion)):
        return state(text, conclusion.scored)
    why = f"The largest contribution is {main.points:+g} points: {main.statement.text}"
    return state(f"{text}. {why}", conclusion.scored, *main.statement.evidence)


def answer_intents(conclusion: Conclusion) -> Iterator[Statement]:
    """Yield the answers to the intents of the last message."""
    intents, case = conclusion.case.scope.intents, conclusion.case
    latest = tuple(entity for entity in case.scope.entities if entity in case.scope.latest)
    asked = latest or case.scope.entities or tuple(case.entities)
    if QueryIntent.FIRST_SEEN in intents or (QueryIntent.WHO_IS in intents and latest):
        for entity in asked[:_MOST]:
            yield from describe_sighting(case, entity)
            yield from map(state_opinion, case.find_opinions(entity)[:_MOST])
    if QueryIntent.WHAT_TO_DO in intents:
        yield from _list_actions(conclusion)
    if QueryIntent.WHO_ELSE in intents:
        yield from _list_others(conclusion)


def _describe_incidents(case: CaseFile) -> Iterator[Statement]:
    """Yield the worst incidents in focus, and the number of others."""
    records = sorted(
        case.in_focus, key=lambda record: (-record.severity.rank, record.occurred_at, record.number)
    )
    for record in records[:_TOP]:
        yield describe_incident(case, record)
        if len(records) == 1:
            yield from describe_techniques(record)
        yield from describe_pass(case, record)
        yield from describe_reactions(case, record)
    if left := records[_TOP:]:
        match = "matches" if len(left) == 1 else "match"
        text = f"{count_noun(len(left), 'more incident')} {match} the question"
        yield state(text, *cite_incidents(left))


def _list_actions(conclusion: Conclusion) -> Iterator[Statement]:
    every = build_actions(conclusion)
    for action in every[:_MOST]:
        text = f"recommended action: {action.text} {action.reason.text}"
        yield state(text, *action.reason.evidence)
    if conclusion.case.scope.doubts:
        yield state(
            "no action is recommended, because part of the question was not understood",
            conclusion.scored,
        )
    elif not every:
        yield state("no finding calls for action", conclusion.scored)


def _find_main_part(conclusion: Conclusion) -> Contribution | None:
    """Return the part of the score that supports the verdict most; None if none does."""
    takes_away = conclusion.verdict is Verdict.BENIGN
    parts = [
        contribution
        for contribution in conclusion.contributions
        if (contribution.points < 0) == takes_away
    ]
    return max(parts, key=lambda part: abs(part.points), default=None)


def _state_examined(conclusion: Conclusion) -> Statement:
    case = conclusion.case
    numbers = (
        (len(case.incidents), "incident", "incidents"),
        (len(case.depths), "entity", "entities"),
        (len(case.events), "event", "events"),
    )
    parts = [count_noun(number, one, several) for number, one, several in numbers if number]
    start, end = format_time(case.window.start), format_time(case.window.end)
    period = f"for the period from {start} to {end}"
    evidence = [conclusion.scored, *conclusion.understood]
    if not parts:
        return state(f"{period}, Tocsin found nothing to examine", *evidence)
    text = f"{period}, Tocsin examined {join_names(parts)}{_describe_focus(case)}"
    return state(text, *evidence)


def _describe_focus(case: CaseFile) -> str:
    """Return a sentence about the related incidents; empty if all incidents are in focus."""
    focus, every = len(case.in_focus), len(case.incidents)
    if focus == every:
        return ""
    if not focus:
        subject = "The incident does" if every == 1 else "The incidents do"
        return f". {subject} not match the question, but {IS[every == 1]} related to it"
    match = "matches" if focus == 1 else "match"
    others = "the other one is" if every - focus == 1 else "the others are"
    return f". Of these incidents, {focus} {match} the question, and {others} related"


def _state_nothing_found(conclusion: Conclusion) -> Iterator[Statement]:
    case = conclusion.case
    if case.incidents or case.events or case.scope.entities:
        return
    words = join_names([f"“{shorten(word)}”" for word in case.scope.words], 10)
    called = "word" if len(case.scope.words) == 1 else "words"
    names = join_names([name_pattern(pattern) for pattern in case.scope.patterns])
    fits = f"the {called} {words}" if words else names or "the question"
    yield state(f"nothing in the stored data matches {fits}", *conclusion.understood)


def _list_main_findings(conclusion: Conclusion) -> Iterator[Statement]:
    """Yield the main findings: explanations for a benign verdict, or else the worst."""
    main = _find_main_part(conclusion)
    main_text = main.statement.text if main else ""
    findings = [
        finding
        for finding in conclusion.findings
        if finding.kind != "incident"
        and finding.id not in conclusion.near
        and not main_text.endswith(f"({finding.id}).")
    ]
    telling = [finding for finding in findings if finding.severity is not Severity.INFORMATIONAL]
    for finding in (telling or findings)[:_TOP]:
        evidence = list_evidence(finding.statements)
        yield state(f"{finding.title} ({finding.id})", *evidence)


def _list_near_findings(conclusion: Conclusion) -> Iterator[Statement]:
    """Yield the worst related findings, which are outside the query."""
    near = [finding for finding in conclusion.findings if finding.id in conclusion.near]
    telling = [finding for finding in near if finding.severity is not Severity.INFORMATIONAL]
    for finding in telling[:_TOP]:
        evidence = list_evidence(finding.statements)
        yield state(
            f"related, but outside the question: {finding.title} ({finding.id})",
            *evidence,
        )


def _list_others(conclusion: Conclusion) -> Iterator[Statement]:
    """Yield the other hosts and users that were found."""
    case = conclusion.case
    named_ones = set(case.scope.entities)
    others = [
        entity
        for entity in case.entities
        if entity not in named_ones and (entity.kind is EntityKind.USER or case.is_ours(entity))
    ]
    if not others:
        yield state("no other host or user was found", *conclusion.understood)
        return
    evidence = [step for other in others for step in _cite_sources(case, other)]
    names = join_names([name_entity(other) for other in others], 10)
    yield state(f"also involved: {names}", *evidence, *conclusion.understood[:1])


def _cite_sources(case: CaseFile, entity: Entity) -> list[str]:
    incidents = cite_incidents(case.incidents_with(entity))
    return incidents or [seen.step for seen in case.events_with(entity)][:_MOST]


def _list_sessions(conclusion: Conclusion) -> Iterator[Statement]:
    """Yield earlier sessions that match, except those whose query adds nothing to this one."""
    case = conclusion.case
    asked = {word for message in conclusion.inquiry.messages for word in find_words(message)}
    sessions = [
        (match, step)
        for match, step in case.matches
        if match.kind == "session" and not set(find_words(match.title)) <= asked | {"investigation"}
    ]
    for match, step in sessions[:_TOP]:
        yield state(
            f"an earlier session is similar: {shorten(match.id)}, “{shorten(match.title)}”", step
        )


def _state_gaps(conclusion: Conclusion) -> Iterator[Statement]:
    if conclusion.gaps:
        evidence = list_evidence(conclusion.gaps)
        number = len(conclusion.gaps)
        text = (
            "this report has 1 gap"
            if number == 1
            else f"this report has {number} gaps. The first gap"
        )
        yield state(f"{text}: {conclusion.gaps[0].text}", *evidence)
