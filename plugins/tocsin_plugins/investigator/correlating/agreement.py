"""Agreement: whether independent sources say the same of an entity."""

from __future__ import annotations

from collections.abc import Iterator

from tocsin import Disposition, Severity
from tocsin_plugins.investigator.case import BAD, Case
from tocsin_plugins.investigator.correlating.found import Found
from tocsin_plugins.investigator.correlating.reputation import said
from tocsin_plugins.investigator.seen import Opinion
from tocsin_plugins.investigator.wording import listed, named


def agreements(case: Case) -> Iterator[Found]:
    """Yield each entity that two or more sources call bad, and none benign."""
    for entity in case.entities:
        bad, benign = _sides(case.opinions_of(entity))
        if len(_sources(bad)) > 1 and not benign:
            yield Found(
                title=f"{listed(_sources(bad))} agree that {named(entity)} is bad",
                severity=Severity.MEDIUM,
                strength=min(len(_sources(bad)) / 3, 1.0),
                statements=tuple(map(said, bad)),
                entities=(entity,),
            )


def disagreements(case: Case) -> Iterator[Found]:
    """Yield each entity that one source calls bad and another benign."""
    for entity in case.entities:
        bad, benign = _sides(case.opinions_of(entity))
        if bad and benign:
            yield Found(
                title=f"sources disagree on {named(entity)}",
                severity=Severity.LOW,
                strength=1.0,
                statements=tuple(map(said, (*bad, *benign))),
                entities=(entity,),
            )


def _sides(opinions: list[Opinion]) -> tuple[list[Opinion], list[Opinion]]:
    bad = [it for it in opinions if it.enrichment.disposition in BAD]
    return bad, [it for it in opinions if it.enrichment.disposition is Disposition.BENIGN]


def _sources(opinions: list[Opinion]) -> list[str]:
    return sorted({opinion.called for opinion in opinions})
