"""What the rules for actions share."""

from __future__ import annotations

from tocsin import Action, Finding, IncidentRecord, Statement, Verdict
from tocsin_plugins.investigator.case import of_incidents
from tocsin_plugins.investigator.conclusion import Conclusion
from tocsin_plugins.investigator.signs import Sign, attacks_in
from tocsin_plugins.investigator.wording import listed, say, sentence


def advice(conclusion: Conclusion, text: str, reason: Statement) -> Action:
    """Return something to do, urgent where it is taken for an attack."""
    urgent = conclusion.verdict is Verdict.MALICIOUS
    return Action(text=sentence(text), reason=reason, urgent=urgent)


def because_of(finding: Finding) -> Statement:
    """Return a finding as a reason."""
    evidence = [it for statement in finding.statements for it in statement.evidence]
    return say(f"{finding.title} ({finding.id})", *evidence)


def because_it_is(word: str, records: list[IncidentRecord]) -> Statement:
    """Return as a reason that incidents show or name something."""
    which = listed([f"incident {record.number}" for record in records])
    return say(f"{which} {word}", *of_incidents(records))


def showing(conclusion: Conclusion, *signs: Sign) -> list[IncidentRecord]:
    """Return the incidents asked about that show one of these; none where it is all benign."""
    if conclusion.verdict is Verdict.BENIGN:
        return []
    return [it for it in conclusion.case.in_focus if attacks_in(it) & set(signs)]
