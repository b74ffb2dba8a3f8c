"""Follow-up actions: check logons and hosts, patch, ask again, tune, close."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from tocsin import Action, IncidentRecord, IncidentStatus, Severity, Verdict
from tocsin_plugins.investigator.case import cite_incidents
from tocsin_plugins.investigator.collection import find_unknown_logons
from tocsin_plugins.investigator.conclusion import Conclusion
from tocsin_plugins.investigator.narrative import (
    find_accounts,
    find_machines,
    find_origins,
    find_targets,
)
from tocsin_plugins.investigator.phrases import at, say, shown, together
from tocsin_plugins.investigator.report.actions.containment import (
    build_action,
    cite_finding,
    cite_records,
    find_compromised,
    find_showing,
)
from tocsin_plugins.investigator.signs import AttackSign

_SILENT = re.compile(r"(.+?) (?:was unavailable|is not there)\b")
_GUESSING = (AttackSign.BRUTE_FORCE, AttackSign.FAILED_LOGON)


def check_logons(conclusion: Conclusion) -> Iterator[Action]:
    """Advise to look whether a guessed password was right, where no event tells."""
    case = conclusion.case
    guessed = find_showing(conclusion, *_GUESSING)
    for record in (logon for logon in find_unknown_logons(case) if logon in guessed):
        by, to = find_origins(case, record), find_machines(case, record)
        whose = together(by or find_accounts(case, record))
        of = f" {'from' if by else 'of'} {whose}" if whose else ""
        on = f" on {together(to)}" if to else ""
        text = f"check whether a logon{of} succeeded{on} since {at(record.occurred_at)}"
        yield build_action(
            conclusion,
            text,
            cite_records("tells of failed logons, no event of others", [record]),
        )


def watch_accounts(conclusion: Conclusion) -> Iterator[Action]:
    """Advise to watch the accounts that somebody tried to get."""
    case = conclusion.case
    reset = {
        entity
        for found in conclusion.select_findings("success-after-failures")
        for entity in found.entities
    }
    for record in find_showing(conclusion, *_GUESSING):
        if users := [account for account in find_accounts(case, record) if account not in reset]:
            text = f"watch {together(users)}, and reset the password where a logon succeeded"
            yield build_action(conclusion, text, cite_records("tried to log on as these", [record]))


def patch(conclusion: Conclusion) -> Iterator[Action]:
    """Advise to mend what is exploited, on the hosts that were tried first."""
    case = conclusion.case
    for finding in conclusion.select_findings("exploited-cve"):
        records = [case.incidents[number] for number in finding.incidents]
        hosts = list(
            dict.fromkeys(chain.from_iterable(find_machines(case, record) for record in records))
        )
        first = f", first on {together(hosts)}" if hosts else ""
        text = f"find and patch what {together(finding.entities)} concerns{first}"
        yield build_action(conclusion, text, cite_finding(finding))


def check_hosts(conclusion: Conclusion) -> Iterator[Action]:
    """Advise to look whether an exploit worked, where nothing more is advised for the host."""
    isolated = find_compromised(conclusion)
    for record in find_showing(conclusion, AttackSign.EXPLOIT):
        if hosts := [
            machine for machine in find_machines(conclusion.case, record) if machine not in isolated
        ]:
            text = f"check {together(hosts)} for traces of it, such as new processes and files"
            yield build_action(
                conclusion, text, cite_records("tells of an attempt to exploit", [record])
            )


def ask_again(conclusion: Conclusion) -> Iterator[Action]:
    """Advise to ask again when somebody who did not answer does."""
    for gap in conclusion.gaps:
        if silent := _SILENT.match(gap.text):
            who = f"{silent[1][:1].lower()}{silent[1][1:]}"
            yield Action(text=f"Ask again when {who} answers.", reason=gap)


def clarify(conclusion: Conclusion, treated: set[int]) -> Iterator[Action]:
    """Advise to ask about a bad incident that is open, and that nothing else is advised for."""
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
    who = f"whoever answers for {together(whom)}" if whom else f"{record.provider} for more"
    what = f"whether what incident {record.number} tells is meant to be so"
    reason = say("nothing that was found explains it", *cite_incidents([record]))
    return build_action(conclusion, f"ask {who} {what}", reason)


def tune(conclusion: Conclusion) -> Iterator[Action]:
    """Advise to keep a rule from telling of what is explained."""
    if conclusion.verdict is not Verdict.BENIGN:
        return
    explanations = conclusion.select_findings(
        "benign-explanation", "background-noise", "internal-only"
    )
    for title in dict.fromkeys(record.title for record in conclusion.case.in_focus):
        text = f"Tune the rule “{shown(title)}”."
        yield Action(text=text, reason=cite_finding(explanations[0]))


def close(conclusion: Conclusion) -> Iterator[Action]:
    """Advise to close what is benign and still open."""
    if conclusion.verdict is not Verdict.BENIGN:
        return
    for record in conclusion.case.in_focus:
        if record.status is not IncidentStatus.CLOSED:
            text = f"it is taken for benign, and is {record.status.value}"
            reason = say(text, conclusion.scored, f"incident:{record.number}")
            yield Action(text=f"Close incident {record.number}.", reason=reason)
