"""What to do so that more is known: check logons and hosts, patch, ask again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from tocsin import Action, IncidentRecord, IncidentStatus, Severity, Verdict
from tocsin_plugins.investigator.case import of_incidents
from tocsin_plugins.investigator.conclusion import Conclusion
from tocsin_plugins.investigator.gathering import logons_unknown
from tocsin_plugins.investigator.reporting.actions.advice import (
    advice,
    because_it_is,
    because_of,
    showing,
)
from tocsin_plugins.investigator.reporting.actions.containing import taken
from tocsin_plugins.investigator.signs import Sign
from tocsin_plugins.investigator.telling import accounts, machines, origins, targets
from tocsin_plugins.investigator.wording import at, say, together

_SILENT = re.compile(r"(.+?) (?:was unavailable|is not there)\b")
_GUESSING = (Sign.BRUTE_FORCE, Sign.FAILED_LOGON)


def check_logons(conclusion: Conclusion) -> Iterator[Action]:
    """Advise to look whether a guessed password was right, where no event tells."""
    case = conclusion.case
    guessed = showing(conclusion, *_GUESSING)
    for record in (it for it in logons_unknown(case) if it in guessed):
        by, to = origins(case, record), machines(case, record)
        whose = together(by or accounts(case, record))
        of = f" {'from' if by else 'of'} {whose}" if whose else ""
        on = f" on {together(to)}" if to else ""
        text = f"check whether a logon{of} succeeded{on} since {at(record.occurred_at)}"
        yield advice(
            conclusion,
            text,
            because_it_is("tells of failed logons, no event of others", [record]),
        )


def watch_accounts(conclusion: Conclusion) -> Iterator[Action]:
    """Advise to watch the accounts that somebody tried to get."""
    case = conclusion.case
    reset = {
        it for found in conclusion.findings_of("success-after-failures") for it in found.entities
    }
    for record in showing(conclusion, *_GUESSING):
        if users := [it for it in accounts(case, record) if it not in reset]:
            text = f"watch {together(users)}, and reset the password where a logon succeeded"
            yield advice(conclusion, text, because_it_is("tried to log on as these", [record]))


def patch(conclusion: Conclusion) -> Iterator[Action]:
    """Advise to mend what is exploited, on the hosts that were tried first."""
    case = conclusion.case
    for finding in conclusion.findings_of("exploited-cve"):
        records = [case.incidents[number] for number in finding.incidents]
        hosts = list(dict.fromkeys(chain.from_iterable(machines(case, it) for it in records)))
        first = f", first on {together(hosts)}" if hosts else ""
        text = f"find and patch what {together(finding.entities)} concerns{first}"
        yield advice(conclusion, text, because_of(finding))


def check_hosts(conclusion: Conclusion) -> Iterator[Action]:
    """Advise to look whether an exploit worked, where nothing more is advised for the host."""
    isolated = taken(conclusion)
    for record in showing(conclusion, Sign.EXPLOIT):
        if hosts := [it for it in machines(conclusion.case, record) if it not in isolated]:
            text = f"check {together(hosts)} for traces of it, such as new processes and files"
            yield advice(
                conclusion, text, because_it_is("tells of an attempt to exploit", [record])
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
    isolated = taken(conclusion)
    for record in conclusion.case.in_focus:
        is_isolated = any(entity in isolated for entity in record.entities)
        is_open = record.status is not IncidentStatus.CLOSED
        is_bad = record.severity.rank >= Severity.MEDIUM.rank
        if is_open and is_bad and not is_isolated and record.number not in treated:
            yield _to_be_explained(conclusion, record)


def _to_be_explained(conclusion: Conclusion, record: IncidentRecord) -> Action:
    case = conclusion.case
    whom = targets(case, record) or accounts(case, record)
    who = f"whoever answers for {together(whom)}" if whom else f"{record.provider} for more"
    what = f"whether what incident {record.number} tells is meant to be so"
    reason = say("nothing that was found explains it", *of_incidents([record]))
    return advice(conclusion, f"ask {who} {what}", reason)
