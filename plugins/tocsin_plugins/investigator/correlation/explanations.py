"""Benign explanations: benign sources, background noise, internal activity."""

from __future__ import annotations

from collections.abc import Iterator

from tocsin import Disposition, Entity, EntityKind, Severity
from tocsin_plugins.investigator.case import BAD_DISPOSITIONS, CaseFile, cite_incidents
from tocsin_plugins.investigator.correlation.drafts import FindingDraft
from tocsin_plugins.investigator.correlation.reputation import state_opinion
from tocsin_plugins.investigator.evidence import Opinion, entity_sort_key
from tocsin_plugins.investigator.phrases import join_entities, name_entity, shorten, state
from tocsin_plugins.investigator.roles import INBOUND, find_sides
from tocsin_plugins.investigator.signs import find_attacks

_PLACES = frozenset({EntityKind.IP, EntityKind.DOMAIN, EntityKind.URL})
_NOISE = frozenset({"noise", "scanner", "mass-scanner", "internet-scanner", "background-noise"})
_SEVERAL = 3
"""Number of attacked machines from which on an internal attack is no everyday activity."""


def find_benign_explanations(case: CaseFile) -> Iterator[FindingDraft]:
    """Yield each entity that sources rate as benign, and none as bad.

    Its strength is the share of the incidents in focus that it is part of.
    """
    for entity in case.asked_entities:
        opinions = case.find_opinions(entity)
        benign = [
            opinion for opinion in opinions if opinion.enrichment.disposition is Disposition.BENIGN
        ]
        if benign and case.find_disposition(entity) not in BAD_DISPOSITIONS:
            yield FindingDraft(
                title=f"{name_entity(entity)} has a benign explanation",
                severity=Severity.INFORMATIONAL,
                strength=_share(case, entity),
                statements=tuple(map(state_opinion, benign)),
                entities=(entity,),
                incidents=tuple(record.number for record in case.incidents_with(entity)),
            )


def find_background_noise(case: CaseFile) -> Iterator[FindingDraft]:
    """Yield each address that a source knows to scan the whole internet."""
    for entity in case.asked_entities:
        noisy = [opinion for opinion in case.find_opinions(entity) if _NOISE & _tags(opinion)]
        if noisy:
            yield FindingDraft(
                title=f"{name_entity(entity)} is internet background noise",
                severity=Severity.INFORMATIONAL,
                strength=_share(case, entity),
                statements=tuple(
                    state(
                        f"according to {opinion.called}, {name_entity(entity)} scans the whole "
                        f"internet: {shorten(opinion.enrichment.summary, 300)}",
                        opinion.step,
                    )
                    for opinion in noisy
                ),
                entities=(entity,),
                incidents=tuple(record.number for record in case.incidents_with(entity)),
            )


def find_internal_only(case: CaseFile) -> Iterator[FindingDraft]:
    """Yield a finding if no external entity is involved and none is rated as bad.

    Every incident must name an address, and every address must be internal: an incident without an
    address has an unknown origin. Severe incidents are no explanation, and neither is an attack on
    several machines: insiders and machines that were taken over are internal, too.
    """
    if any(
        record.severity.rank >= Severity.HIGH.rank and not record.severity_assumed
        for record in case.in_focus
    ):
        return
    if _spreads(case):
        return
    involved = [
        {entity for entity in record.entities if not case.scope.ignores(entity)}
        for record in case.records
    ]
    every = sorted(set[Entity]().union(*involved), key=entity_sort_key)
    if not involved or not all(any(entity.kind in _PLACES for entity in some) for some in involved):
        return
    if any(_is_foreign(case, entity) for entity in every):
        return
    names = join_entities(every)
    only = "incident involves" if len(case.records) == 1 else "incidents involve"
    yield FindingDraft(
        title="no external entity is involved",
        severity=Severity.INFORMATIONAL,
        strength=1.0,
        statements=(state(f"the {only} only {names}", *cite_incidents(case.records)),),
        incidents=tuple(sorted(case.incidents)),
    )


def _spreads(case: CaseFile) -> bool:
    """Return whether a machine that nothing explains attacks several internal machines."""
    targets: dict[Entity, set[Entity]] = {}
    for record in case.records:
        if find_attacks(record) & INBOUND:
            sides = find_sides(case, record)
            for source in sides.sources:
                targets.setdefault(source, set()).update(sides.targets - sides.sources)
    return any(
        len(attacked) >= _SEVERAL and case.find_disposition(source) is not Disposition.BENIGN
        for source, attacked in targets.items()
    )


def _is_foreign(case: CaseFile, entity: Entity) -> bool:
    """Return whether an entity is bad, or external."""
    is_elsewhere = entity.kind in _PLACES and not case.is_ours(entity)
    return (
        is_elsewhere or case.is_outside(entity) or case.find_disposition(entity) in BAD_DISPOSITIONS
    )


def _tags(opinion: Opinion) -> set[str]:
    return {tag.lower() for tag in opinion.enrichment.tags}


def _share(case: CaseFile, entity: Entity) -> float:
    """Return the share of the incidents in focus, or of the entities, that an entity explains."""
    if records := case.in_focus:
        return sum(entity in record.entities for record in records) / len(records)
    return 1 / max(len(case.scope.entities), 1)
