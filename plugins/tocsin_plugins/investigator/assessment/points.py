"""Risk score: a sum of named parts, each with its evidence."""

from __future__ import annotations

from collections.abc import Sequence

from tocsin import Contribution, Entity, Finding, Statement
from tocsin_plugins.investigator.case import CaseFile
from tocsin_plugins.investigator.correlation import RULES, WeightedFinding
from tocsin_plugins.investigator.evidence import entity_sort_key, list_evidence
from tocsin_plugins.investigator.phrases import state
from tocsin_plugins.investigator.roles import find_origins
from tocsin_plugins.investigator.settings import Settings

_NAMES = {"incident": "severity"}  # the weight of an incident
_WORST = 100.0


_FOR_ALL = frozenset({"benign-explanation", "background-noise", "internal-only", "disagreement"})
"""Kinds of findings that count for every attacker."""


def score_worst(
    findings: Sequence[WeightedFinding], case: CaseFile, settings: Settings
) -> tuple[tuple[Contribution, ...], tuple[Entity, ...]]:
    """Return the parts of the score for the worst attacker, and all attackers in focus.

    Findings on different attackers are not added up: a scan by one and an exploit attempt by
    another are not one attack. Findings without an external attacker count for each.
    """
    actors = [_find_actors(case, weighed) for weighed in findings]
    every = {
        actor
        for weighed, those in zip(findings, actors, strict=True)
        for actor in those
        if not weighed.is_near
    }
    best = () if every else score_findings(findings, settings)
    for actor in sorted(every, key=entity_sort_key):
        own = [
            weighed
            for weighed, those in zip(findings, actors, strict=True)
            if not those or actor in those or weighed.finding.kind in _FOR_ALL
        ]
        parts = score_findings(own, settings)
        if not best or total_score(parts) > total_score(best):
            best = parts
    return best, tuple(sorted(every, key=entity_sort_key))


def _find_actors(case: CaseFile, weighed: WeightedFinding) -> frozenset[Entity]:
    """Return the external attackers in a finding, or else in its incidents."""
    records = [
        case.incidents[number] for number in weighed.finding.incidents if number in case.incidents
    ]
    origins = {origin for record in records for origin in find_origins(case, record)}
    return frozenset(origins & set(weighed.finding.entities) or origins)


def score_findings(
    findings: Sequence[WeightedFinding], settings: Settings
) -> tuple[Contribution, ...]:
    """Return the parts of the score, the largest first.

    Each kind of finding counts once, by its strongest; incidents in focus are one kind, and count
    by severity. Related findings count in part, and not at all if everything in focus is explained.
    """
    is_explained = any(_explains_all(weighed) for weighed in findings)
    share = 0.0 if is_explained else settings.found_near
    parts = []
    for kind in RULES:
        counted = [
            (weighed.strength * (share if weighed.is_near else 1), weighed)
            for weighed in findings
            if weighed.finding.kind == kind
        ]
        if counted:
            strength, strongest = max(counted, key=lambda pair: pair[0])
            parts.append(_of_finding(strongest, strength, settings))
    return tuple(sorted((part for part in parts if part.points), key=lambda part: -part.points))


def _explains_all(weighed: WeightedFinding) -> bool:
    return (
        weighed.finding.kind == "benign-explanation"
        and not weighed.is_near
        and weighed.strength >= 1
    )


def total_score(parts: Sequence[Contribution]) -> float:
    """Return the sum, from 0 to 100."""
    return round(min(max(sum(part.points for part in parts), 0.0), _WORST), 1)


def _of_finding(weighed: WeightedFinding, strength: float, settings: Settings) -> Contribution:
    finding = weighed.finding
    name = _NAMES.get(finding.kind, finding.kind)
    weight, strength = settings.weights.of(name), min(max(strength, 0.0), 1.0)
    points = round(weight * strength, 1)
    if finding.kind == "incident":
        statement = _of_severity(finding, f"{strength:.0%} of the maximum of {weight:g} points")
    else:
        evidence = list_evidence(finding.statements)
        share = f"only {settings.found_near:.0%} of its points"
        near = (
            f", which contributes {share} because it is outside the question"
            if weighed.is_near
            else ""
        )
        statement = state(f"{finding.title} ({finding.id}){near}", *evidence)
    return Contribution(name=name, points=points, statement=statement)


def _of_severity(finding: Finding, share: str) -> Statement:
    [number] = finding.incidents
    text = f"incident {number} has a severity of {finding.severity.value}"
    return state(f"{text}, which contributes {share} ({finding.id})", f"incident:{number}")
