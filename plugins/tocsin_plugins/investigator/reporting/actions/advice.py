"""What the rules for actions share."""

from __future__ import annotations

from tocsin import Action, Finding, IncidentRecord, Statement, Verdict
from tocsin_plugins.investigator.case import cite_incidents
from tocsin_plugins.investigator.conclusion import Conclusion
from tocsin_plugins.investigator.signs import AttackSign, find_attacks
from tocsin_plugins.investigator.wording import listed, say, sentence


def build_action(conclusion: Conclusion, text: str, reason: Statement) -> Action:
    """Return something to do, urgent where it is taken for an attack."""
    urgent = conclusion.verdict is Verdict.MALICIOUS
    return Action(text=sentence(text), reason=reason, urgent=urgent)


def cite_finding(finding: Finding) -> Statement:
    """Return a finding as a reason."""
    evidence = [it for statement in finding.statements for it in statement.evidence]
    return say(f"{finding.title} ({finding.id})", *evidence)


def cite_records(word: str, records: list[IncidentRecord]) -> Statement:
    """Return as a reason that incidents show or name something."""
    which = listed([f"incident {record.number}" for record in records])
    return say(f"{which} {word}", *cite_incidents(records))


def find_showing(conclusion: Conclusion, *signs: AttackSign) -> list[IncidentRecord]:
    """Return the incidents asked about that show one of these; none where it is all benign."""
    if conclusion.verdict is Verdict.BENIGN:
        return []
    return [it for it in conclusion.case.in_focus if find_attacks(it) & set(signs)]
