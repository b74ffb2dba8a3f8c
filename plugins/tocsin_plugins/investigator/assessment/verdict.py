"""Verdict and confidence from the score and the findings."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from tocsin import Confidence, Disposition, Verdict
from tocsin_plugins.investigator.case import Case
from tocsin_plugins.investigator.correlation import WeightedFinding

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
    case: Case,
    findings: Sequence[WeightedFinding],
    *,
    silent: AbstractSet[str],
    needed: AbstractSet[str],
) -> Confidence:
    """Return the confidence: high, less one level for each weakness.

    Weaknesses are a silent source, a disagreement, and a single source of information.
    Low if several sources or a required one were silent, and for an inconclusive verdict.
    """
    if verdict is Verdict.INCONCLUSIVE or len(silent) > 1 or silent & needed:
        return Confidence.LOW
    disagree = any(
        finding.finding.kind == "disagreement" and not finding.is_near for finding in findings
    )
    is_single = len(independent_sources(case)) < _ENOUGH_SOURCES
    return _LEVELS[min(bool(silent) + disagree + is_single, len(_LEVELS) - 1)]


def independent_sources(case: Case) -> frozenset[str]:
    """Return the sources of incidents, events and opinions."""
    told = {f"provider:{record.provider}" for record in case.records}
    told |= {f"provider:{seen.provider}" for seen in case.events}
    opinions = (
        opinion
        for opinion in case.opinions
        if opinion.enrichment.disposition is not Disposition.UNKNOWN
    )
    return frozenset(told | {f"enricher:{opinion.source}" for opinion in opinions})
