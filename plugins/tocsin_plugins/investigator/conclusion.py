"""Conclusion of an investigation, before its report is written."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin import Confidence, Contribution, Finding, Inquiry, Statement, Verdict
from tocsin_plugins.investigator.case import Case
from tocsin_plugins.investigator.settings import Bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """The results from which a report is written."""

    inquiry: Inquiry
    case: Case
    bounds: Bounds
    findings: tuple[Finding, ...]
    near: frozenset[str]
    """The IDs of related findings, which are outside the query."""
    contributions: tuple[Contribution, ...]
    score: float
    verdict: Verdict
    confidence: Confidence
    gaps: tuple[Statement, ...]
    understood: tuple[str, ...]
    """The steps that record how the messages were interpreted."""
    scored: str
    """The step that records the score."""

    def select_findings(self, *kinds: str) -> list[Finding]:
        """Return the findings of these kinds."""
        return [finding for finding in self.findings if finding.kind in kinds]
