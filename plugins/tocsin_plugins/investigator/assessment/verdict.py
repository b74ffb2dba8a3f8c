"""Verdict and confidence, and the conclusion that a report is written from."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from tocsin import (
    Confidence,
    Contribution,
    Disposition,
    Entity,
    Finding,
    Inquiry,
    Statement,
    Verdict,
)
from tocsin_plugins.investigator.case import CaseFile
from tocsin_plugins.investigator.correlation import WeightedFinding
from tocsin_plugins.investigator.roles import CaseRoles
from tocsin_plugins.investigator.settings import Bounds

_MALICIOUS = 70
_SUSPICIOUS = 20
_EXPLAINS = frozenset({"benign-explanation", "background-noise", "internal-only"})
_ENOUGH_SOURCES = 2
_LEVELS = (Confidence.HIGH, Confidence.MEDIUM, Confidence.LOW)


def judge_verdict(score: float, findings: Sequence[WeightedFinding]) -> Verdict:
    """Return the verdict: malicious from 70 on, suspicious from 20 on.

    Below, it is benign with an explanation and without disagreement, otherwise inconclusive.
    """
    if score >= _MALICIOUS:
        return Verdict.MALICIOUS
    if score >= _SUSPICIOUS:
        return Verdict.SUSPICIOUS
    kinds = {weighed.finding.kind for weighed in findings if not weighed.is_near}
    is_explained = kinds & _EXPLAINS and "disagreement" not in kinds
    return Verdict.BENIGN if is_explained else Verdict.INCONCLUSIVE


def judge_confidence(
    verdict: Verdict,
    case: CaseFile,
    findings: Sequence[WeightedFinding],
    *,
    silent: AbstractSet[str],
    needed: AbstractSet[str],
    names_networks: bool,
) -> Confidence:
    """Return the confidence: high, less one level for each weakness.

    Weaknesses are a silent source, a disagreement, and a single source of information.
    Low if several sources or a required one were silent, if part of the query was not understood,
    and for an inconclusive verdict. Medium at most if the internal networks are not configured.
    """
    is_weak = verdict is Verdict.INCONCLUSIVE or bool(case.scope.doubts)
    if is_weak or len(silent) > 1 or silent & needed:
        return Confidence.LOW
    disagree = any(
        finding.finding.kind == "disagreement" and not finding.is_near for finding in findings
    )
    is_single = len(independent_sources(case)) < _ENOUGH_SOURCES
    weaknesses = max(bool(silent) + disagree + is_single, int(not names_networks))
    return _LEVELS[min(weaknesses, len(_LEVELS) - 1)]


def independent_sources(case: CaseFile) -> frozenset[str]:
    """Return the sources of incidents, events and opinions."""
    sources = {f"provider:{record.provider}" for record in case.records}
    sources |= {f"provider:{seen.provider}" for seen in case.events}
    opinions = (
        opinion
        for opinion in case.opinions
        if opinion.enrichment.disposition is not Disposition.UNKNOWN
    )
    return frozenset(sources | {f"enricher:{opinion.source}" for opinion in opinions})


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """The results from which a report is written."""

    inquiry: Inquiry
    case: CaseFile
    bounds: Bounds
    roles: CaseRoles
    findings: tuple[Finding, ...]
    near: frozenset[str]
    """The IDs of related findings, which are outside the query."""
    contributions: tuple[Contribution, ...]
    attackers: tuple[Entity, ...]
    """The external attackers in focus; the score is that of the worst of them."""
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
