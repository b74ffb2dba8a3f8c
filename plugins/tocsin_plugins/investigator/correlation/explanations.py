"""Benign explanations: benign sources, background noise, internal activity."""

from __future__ import annotations

from collections.abc import Iterator

from tocsin import Disposition, Entity, EntityKind, Severity
from tocsin_plugins.investigator.case import BAD_DISPOSITIONS, Case, cite_incidents
from tocsin_plugins.investigator.correlation.drafts import FindingDraft
from tocsin_plugins.investigator.correlation.reputation import state_opinion
from tocsin_plugins.investigator.evidence import Opinion, entity_sort_key
from tocsin_plugins.investigator.phrases import named, say, shown, together

_PLACES = frozenset({EntityKind.IP, EntityKind.DOMAIN, EntityKind.URL})
_NOISE = frozenset({"noise", "scanner", "mass-scanner", "internet-scanner", "background-noise"})


def find_benign_explanations(case: Case) -> Iterator[FindingDraft]:
    """Yield each entity that sources call benign, where none calls it bad.

    It counts by as much of the incidents asked about as it is part of.
    """
    for entity in _asked(case):
        opinions = case.find_opinions(entity)
        benign = [
            opinion for opinion in opinions if opinion.enrichment.disposition is Disposition.BENIGN
        ]
        if benign and case.find_disposition(entity) not in BAD_DISPOSITIONS:
            yield FindingDraft(
                title=f"{named(entity)} is explained",
                severity=Severity.INFORMATIONAL,
                strength=_share(case, entity),
                statements=tuple(map(state_opinion, benign)),
                entities=(entity,),
                incidents=tuple(record.number for record in case.incidents_with(entity)),
            )


def find_background_noise(case: Case) -> Iterator[FindingDraft]:
    """Yield each address that a source knows to knock at every door of the Internet."""
    for entity in _asked(case):
        noisy = [opinion for opinion in case.find_opinions(entity) if _NOISE & _tags(opinion)]
        if noisy:
            yield FindingDraft(
                title=f"{named(entity)} is noise of the Internet",
                severity=Severity.INFORMATIONAL,
                strength=_share(case, entity),
                statements=tuple(
                    say(
                        f"according to {it.called}, {named(entity)} scans everybody: "
                        f"{shown(it.enrichment.summary, 300)}",
                        it.step,
                    )
                    for it in noisy
                ),
                entities=(entity,),
                incidents=tuple(record.number for record in case.incidents_with(entity)),
            )


def find_internal_only(case: Case) -> Iterator[FindingDraft]:
    """Yield that nothing from outside has a part in the incidents, where nothing is called bad.

    Every incident must name an address, and every address must be ours: what names none says
    nothing of where it came from.
    """
    ignored = case.scope.ignored_entities
    involved = [set(record.entities) - ignored for record in case.records]
    every = sorted(set[Entity]().union(*involved), key=entity_sort_key)
    if not involved or not all(any(it.kind in _PLACES for it in some) for some in involved):
        return
    if any(_is_foreign(case, entity) for entity in every):
        return
    names = together(every)
    yield FindingDraft(
        title="nothing from outside has a part in it",
        severity=Severity.INFORMATIONAL,
        strength=1.0,
        statements=(say(f"the incidents involve only {names}", *cite_incidents(case.records)),),
        incidents=tuple(sorted(case.incidents)),
    )


def _is_foreign(case: Case, entity: Entity) -> bool:
    """Return whether an entity is bad, or not ours though it comes from somewhere."""
    is_elsewhere = entity.kind in _PLACES and not case.is_ours(entity)
    return (
        is_elsewhere or case.is_outside(entity) or case.find_disposition(entity) in BAD_DISPOSITIONS
    )


def _asked(case: Case) -> list[Entity]:
    return [entity for entity in case.entities if case.depths[entity] == 0]


def _tags(opinion: Opinion) -> set[str]:
    return {tag.lower() for tag in opinion.enrichment.tags}


def _share(case: Case, entity: Entity) -> float:
    """Return the part that an entity explains of the incidents asked about, or of the entities."""
    if records := case.in_focus:
        return sum(entity in record.entities for record in records) / len(records)
    return 1 / max(len(case.scope.entities), 1)
