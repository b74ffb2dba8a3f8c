"""Shared entities: what several incidents have in common."""

from __future__ import annotations

from collections.abc import Iterator

from tocsin import Entity, Severity
from tocsin_plugins.investigator.case import Case, cite_incidents
from tocsin_plugins.investigator.correlating.found import FindingDraft, grade_strength
from tocsin_plugins.investigator.wording import counted, listed, named, say

_STRENGTHS = {2: 0.5, 3: 0.75, 4: 1.0}


def find_shared_entities(case: Case) -> Iterator[FindingDraft]:
    """Yield what two or more of the incidents involve; entities of the same ones together.

    What is well known, or internal and in very many incidents, connects nothing.
    """
    groups: dict[tuple[int, ...], list[Entity]] = {}
    for entity in case.entities:
        numbers = tuple(record.number for record in case.incidents_with(entity))
        if grade_strength(len(numbers), _STRENGTHS) and case.connects(entity):
            groups.setdefault(numbers, []).append(entity)
    for numbers, entities in groups.items():
        yield _draft_sharing(case, numbers, entities)


def _draft_sharing(case: Case, numbers: tuple[int, ...], entities: list[Entity]) -> FindingDraft:
    incidents = [case.incidents[number] for number in numbers]
    which = listed([f"incident {number}" for number in sorted(numbers)])
    what = listed([named(entity) for entity in entities])
    providers = sorted({record.provider for record in incidents})
    told = f", told of by {listed(providers)}" if len(providers) > 1 else ""
    return FindingDraft(
        title=f"{counted(len(numbers), 'incident')} have {what} in common",
        severity=Severity.MEDIUM if len(providers) > 1 else Severity.LOW,
        strength=grade_strength(len(numbers), _STRENGTHS),
        statements=(say(f"{which} involve {what}{told}", *cite_incidents(incidents)),),
        entities=tuple(entities),
        incidents=tuple(sorted(numbers)),
    )
