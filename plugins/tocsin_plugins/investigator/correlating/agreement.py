"""Agreement: whether independent sources say the same of an entity."""

from __future__ import annotations

from collections.abc import Iterator

from tocsin import Disposition, Severity
from tocsin_plugins.investigator.case import BAD_DISPOSITIONS, Case
from tocsin_plugins.investigator.correlating.found import FindingDraft
from tocsin_plugins.investigator.correlating.reputation import state_opinion
from tocsin_plugins.investigator.seen import Opinion
from tocsin_plugins.investigator.wording import listed, named


def find_agreements(case: Case) -> Iterator[FindingDraft]:
    """Yield each entity that two or more sources call bad, and none benign."""
    for entity in case.entities:
        bad, benign = _sides(case.find_opinions(entity))
        if len(_sources(bad)) > 1 and not benign:
            yield FindingDraft(
                title=f"{listed(_sources(bad))} agree that {named(entity)} is bad",
                severity=Severity.MEDIUM,
                strength=min(len(_sources(bad)) / 3, 1.0),
                statements=tuple(map(state_opinion, bad)),
                entities=(entity,),
            )


def find_disagreements(case: Case) -> Iterator[FindingDraft]:
    """Yield each entity that one source calls bad and another benign."""
    for entity in case.entities:
        bad, benign = _sides(case.find_opinions(entity))
        if bad and benign:
            yield FindingDraft(
                title=f"sources disagree on {named(entity)}",
                severity=Severity.LOW,
                strength=1.0,
                statements=tuple(map(state_opinion, (*bad, *benign))),
                entities=(entity,),
            )


def _sides(opinions: list[Opinion]) -> tuple[list[Opinion], list[Opinion]]:
    bad = [it for it in opinions if it.enrichment.disposition in BAD_DISPOSITIONS]
    return bad, [it for it in opinions if it.enrichment.disposition is Disposition.BENIGN]


def _sources(opinions: list[Opinion]) -> list[str]:
    return sorted({opinion.called for opinion in opinions})
