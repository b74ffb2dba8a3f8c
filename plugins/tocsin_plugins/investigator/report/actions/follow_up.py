"""Follow-up actions: check logons and hosts, patch, ask again, tune, close."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from tocsin import Action, IncidentRecord, IncidentStatus, Severity, Verdict
from tocsin_plugins.investigator.assessment import Conclusion
from tocsin_plugins.investigator.case import cite_incidents
from tocsin_plugins.investigator.collection import find_unknown_logons
from tocsin_plugins.investigator.narrative import (
    find_accounts,
    find_machines,
    find_targets,
)
from tocsin_plugins.investigator.phrases import (
    format_time,
    join_entities,
    name_source,
    shorten,
    state,
)
from tocsin_plugins.investigator.report.actions.containment import (
    build_action,
    cite_finding,
    cite_records,
    find_compromised,
    find_showing,
)
from tocsin_plugins.investigator.roles import find_origins
from tocsin_plugins.investigator.signs import AttackSign

_SILENT = re.compile(r"(.+?) (?:was unavailable|is not running)\b")
_GUESSING = (AttackSign.BRUTE_FORCE, AttackSign.FAILED_LOGON)


def check_logons(conclusion: Conclusion) -> Iterator[Action]:
    """Recommend to check for successful logons if no event shows the outcome."""
    case = conclusion.case
    guessed = find_showing(conclusion, *_GUESSING)
    for record in (logon for logon in find_unknown_logons(case) if logon in guessed):
        by, to = find_origins(case, record), find_machines(case, record)
        whose = join_entities(by or find_accounts(case, record))
        of = f" {'from' if by else 'of'} {whose}" if whose else ""
        on = f" to {join_entities(to)}" if to else ""
        since = format_time(record.occurred_at)
        text = f"check whether a logon{of}{on} has succeeded since {since}"
        yield build_action(
            conclusion,
            text,
            cite_records("shows failed logons, and no event shows a successful one", [record]),
        )


def watch_accounts(conclusion: Conclusion) -> Iterator[Action]:
    """Recommend to watch the accounts under attack."""
    case = conclusion.case
    reset = {
        entity
        for found in conclusion.select_findings("success-after-failures")
        for entity in found.entities
    }
    for record in find_showing(conclusion, *_GUESSING):
        if users := [account for account in find_accounts(case, record) if account not in reset]:
            whose = "the password" if len(users) == 1 else "their passwords"
            text = f"watch {join_entities(users)}, and reset {whose} if a logon has succeeded"
            accounts = "this account" if len(users) == 1 else "these accounts"
            reason = cite_records(f"shows attempts to log on to {accounts}", [record])
            yield build_action(conclusion, text, reason)


def patch(conclusion: Conclusion) -> Iterator[Action]:
    """Recommend to patch exploited vulnerabilities, starting with the attacked hosts."""
    case = conclusion.case
    for finding in conclusion.select_findings("exploited-cve"):
        records = [case.incidents[number] for number in finding.incidents]
        hosts = list(
            dict.fromkeys(chain.from_iterable(find_machines(case, record) for record in records))
        )
        first = f", starting with {join_entities(hosts)}" if hosts else ""
        text = f"find and patch systems with {join_entities(finding.entities)}{first}"
        yield build_action(conclusion, text, cite_finding(finding))


def check_hosts(conclusion: Conclusion) -> Iterator[Action]:
    """Recommend to check hosts for a successful exploit, unless they are to be isolated."""
    isolated = find_compromised(conclusion)
    for record in find_showing(conclusion, AttackSign.EXPLOIT):
        if hosts := [
            machine for machine in find_machines(conclusion.case, record) if machine not in isolated
        ]:
            traces = "traces of an exploit, such as new processes or files"
            text = f"check {join_entities(hosts)} for {traces}"
            reason = cite_records("shows an exploit attempt", [record])
            yield build_action(conclusion, text, reason)


def ask_again(conclusion: Conclusion) -> Iterator[Action]:
    """Recommend to repeat the query when an unavailable source is available."""
    for gap in conclusion.gaps:
        if silent := _SILENT.match(gap.text):
            who = f"{silent[1][:1].lower()}{silent[1][1:]}"
            yield Action(text=f"Ask again when {who} is available.", reason=gap)


def clarify(conclusion: Conclusion, treated: set[int]) -> Iterator[Action]:
    """Recommend to clarify severe open incidents without another action."""
    if conclusion.verdict is Verdict.BENIGN:
        return
    isolated = find_compromised(conclusion)
    for record in conclusion.case.in_focus:
        is_isolated = any(entity in isolated for entity in record.entities)
        is_open = record.status is not IncidentStatus.CLOSED
        is_bad = record.severity.rank >= Severity.MEDIUM.rank
        if is_open and is_bad and not is_isolated and record.number not in treated:
            yield _clarify_record(conclusion, record)


def _clarify_record(conclusion: Conclusion, record: IncidentRecord) -> Action:
    case = conclusion.case
    whom = find_targets(case, record) or find_accounts(case, record)
    who = (
        f"ask the owner of {join_entities(whom)}"
        if whom
        else f"check in {name_source(f'provider:{record.provider}')}"
    )
    what = f"whether the activity in incident {record.number} is expected"
    reason = state("no finding explains the activity", *cite_incidents([record]))
    return build_action(conclusion, f"{who} {what}", reason)


def tune(conclusion: Conclusion) -> Iterator[Action]:
    """Recommend to tune the rules of benign incidents."""
    if conclusion.verdict is not Verdict.BENIGN:
        return
    explanations = conclusion.select_findings(
        "benign-explanation", "background-noise", "internal-only"
    )
    for title in dict.fromkeys(record.title for record in conclusion.case.in_focus):
        text = f"Tune the rule “{shorten(title)}”."
        yield Action(text=text, reason=cite_finding(explanations[0]))


def close(conclusion: Conclusion) -> Iterator[Action]:
    """Recommend to close benign incidents that are open."""
    if conclusion.verdict is not Verdict.BENIGN:
        return
    for record in conclusion.case.in_focus:
        if record.status is not IncidentStatus.CLOSED:
            text = f"the verdict is benign, but the incident's status is {record.status.value}"
            reason = state(text, conclusion.scored, f"incident:{record.number}")
            yield Action(text=f"Close incident {record.number}.", reason=reason)
