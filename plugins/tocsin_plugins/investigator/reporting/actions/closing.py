"""What to do where there is nothing behind it."""

from __future__ import annotations

from collections.abc import Iterator

from tocsin import Action, IncidentStatus, Verdict
from tocsin_plugins.investigator.conclusion import Conclusion
from tocsin_plugins.investigator.reporting.actions.advice import cite_finding
from tocsin_plugins.investigator.wording import say, shown


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
