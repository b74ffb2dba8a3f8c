"""Opinions of sources: bad reputation, agreement, disagreement and exploited vulnerabilities."""

from __future__ import annotations

from collections.abc import Iterator

from tocsin import Disposition, EntityKind, Severity, Statement
from tocsin_plugins.investigator.case import BAD_DISPOSITIONS, CaseFile
from tocsin_plugins.investigator.correlation.drafts import FindingDraft
from tocsin_plugins.investigator.evidence import Opinion
from tocsin_plugins.investigator.phrases import join_names, name_entity, shorten, state

_CERTAIN = {Disposition.MALICIOUS: 0.8, Disposition.SUSPICIOUS: 0.4}
_SEVERITIES = {Disposition.MALICIOUS: Severity.HIGH, Disposition.SUSPICIOUS: Severity.MEDIUM}
_CONTRADICTED = 0.6
_SECOND = 0.2


def find_bad_reputation(case: CaseFile) -> Iterator[FindingDraft]:
    """Yield each entity that a source rates as malicious or suspicious.

    A source counts 0.8 for malicious and 0.4 for suspicious, scaled by its own score if it gives
    one. A second source adds 0.2, and a benign opinion lowers the strength.
    """
    for entity in case.entities:
        opinions = case.find_opinions(entity)
        bad = [
            opinion for opinion in opinions if opinion.enrichment.disposition in BAD_DISPOSITIONS
        ]
        has_a_name = entity.kind is not EntityKind.CVE and not case.find_sighting(entity).well_known
        if not bad or not has_a_name:
            continue
        worst = case.find_disposition(entity)
        yield FindingDraft(
            title=f"{name_entity(entity)} has a bad reputation",
            severity=_SEVERITIES[worst],
            strength=_reputation_strength(opinions, bad),
            statements=tuple(state_opinion(opinion) for opinion in bad),
            entities=(entity,),
            incidents=tuple(record.number for record in case.incidents_with(entity)),
        )


def state_opinion(opinion: Opinion) -> Statement:
    """Return the opinion of an enricher as a statement; only facts if it has no disposition."""
    enrichment = opinion.enrichment
    name, summary = name_entity(enrichment.entity), shorten(enrichment.summary, 300)
    if enrichment.disposition is Disposition.UNKNOWN:
        return state(f"information from {opinion.called} about {name}: {summary}", opinion.step)
    about = f"{name} is {enrichment.disposition.value}"
    return state(f"according to {opinion.called}, {about}: {summary}", opinion.step)


def _reputation_strength(opinions: list[Opinion], bad: list[Opinion]) -> float:
    strength = max(_weight(opinion) for opinion in bad)
    if len({opinion.source for opinion in bad}) > 1:
        strength += _SECOND
    if any(opinion.enrichment.disposition is Disposition.BENIGN for opinion in opinions):
        strength *= _CONTRADICTED
    return min(strength, 1.0)


def _weight(opinion: Opinion) -> float:
    """Return the weight of one opinion; a low score of its own lowers it by up to half."""
    score = opinion.enrichment.score
    share = 1.0 if score is None else 0.5 + min(max(score, 0), 100) / 200
    return _CERTAIN[opinion.enrichment.disposition] * share


def find_agreements(case: CaseFile) -> Iterator[FindingDraft]:
    """Yield each entity that two or more sources rate as bad, and none as benign."""
    for entity in case.entities:
        bad, benign = _sides(case.find_opinions(entity))
        if len(_sources(bad)) > 1 and not benign:
            sources = join_names(_sources(bad))
            yield FindingDraft(
                title=f"{sources} agree that {name_entity(entity)} is malicious or suspicious",
                severity=Severity.MEDIUM,
                strength=min(len(_sources(bad)) / 3, 1.0),
                statements=tuple(map(state_opinion, bad)),
                entities=(entity,),
            )


def find_disagreements(case: CaseFile) -> Iterator[FindingDraft]:
    """Yield each entity that one source rates as bad and another as benign."""
    for entity in case.entities:
        bad, benign = _sides(case.find_opinions(entity))
        if bad and benign:
            yield FindingDraft(
                title=f"sources disagree about {name_entity(entity)}",
                severity=Severity.LOW,
                strength=1.0,
                statements=tuple(map(state_opinion, (*bad, *benign))),
                entities=(entity,),
            )


def _sides(opinions: list[Opinion]) -> tuple[list[Opinion], list[Opinion]]:
    bad = [opinion for opinion in opinions if opinion.enrichment.disposition in BAD_DISPOSITIONS]
    return bad, [
        opinion for opinion in opinions if opinion.enrichment.disposition is Disposition.BENIGN
    ]


def _sources(opinions: list[Opinion]) -> list[str]:
    return sorted({opinion.called for opinion in opinions})


_TAGS = frozenset({"known-exploited", "exploited", "kev"})


def find_exploited_cves(case: CaseFile) -> Iterator[FindingDraft]:
    """Yield each CVE that a source reports as exploited."""
    for entity in case.entities:
        if entity.kind is not EntityKind.CVE:
            continue
        telling = [
            opinion
            for opinion in case.find_opinions(entity)
            if _TAGS & set(opinion.enrichment.tags)
        ]
        if telling:
            yield FindingDraft(
                title=f"{shorten(entity.value)} is known to be exploited",
                severity=Severity.HIGH,
                strength=1.0,
                statements=tuple(
                    state(
                        f"according to {opinion.called}: "
                        f"{shorten(opinion.enrichment.summary, 300)}",
                        opinion.step,
                    )
                    for opinion in telling
                ),
                entities=(entity,),
                incidents=tuple(record.number for record in case.incidents_with(entity)),
            )
