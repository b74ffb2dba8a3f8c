"""Pivots from the named entities to related ones, within bounds."""

from __future__ import annotations

from collections.abc import Sequence

from tocsin import Entity
from tocsin_plugins.investigator.case import CaseFile
from tocsin_plugins.investigator.collection.examination import EntityExaminer, sort_by_priority
from tocsin_plugins.investigator.evidence import entity_sort_key
from tocsin_plugins.investigator.phrases import WAS, count_noun, state

_SIGHTED_PER_EXAMINED = 4
"""Number of candidates compared for each one that can still be examined."""


async def examine_named(examiner: EntityExaminer) -> None:
    """Examine the named entities and those of the incidents."""
    case = examiner.case
    every = {entity for record in case.incidents.values() for entity in record.entities}
    involved = {entity for entity in every if not case.scope.ignores(entity)}
    named = list(case.scope.entities)
    await _examine(examiner, [*named, *sorted(involved - set(named), key=entity_sort_key)], depth=0)


async def follow_pivots(examiner: EntityExaminer) -> None:
    """Pivot to related entities, one step deeper each round, unless the query excludes that."""
    if examiner.case.scope.narrowed:
        return
    for depth in range(1, examiner.client.bounds.depth + 1):
        candidates = _candidates(examiner.case)
        if not candidates or examiner.client.is_out_of_time:
            break
        await _examine(examiner, candidates, depth)
    _note_unexamined(examiner)


async def _examine(examiner: EntityExaminer, candidates: Sequence[Entity], depth: int) -> None:
    """Examine the most significant candidates, as many as the bound allows."""
    case, bounds = examiner.case, examiner.client.bounds
    room = max(bounds.entities - len(case.depths), 0)
    considered = sort_by_priority(case, candidates) if depth else list(candidates)
    await examiner.load_sightings(considered[: room * _SIGHTED_PER_EXAMINED])
    named = set(case.scope.entities)
    ranked = sort_by_priority(case, considered)
    ranked.sort(key=lambda entity: (entity not in named, entity not in case.sightings))
    chosen = ranked[:room]
    case.depths |= dict.fromkeys(chosen, depth)
    await examiner.examine(chosen)


def _candidates(case: CaseFile) -> list[Entity]:
    return [
        entity
        for entity in case.found_entities()
        if entity not in case.depths and not case.scope.ignores(entity)
    ]


def _note_unexamined(examiner: EntityExaminer) -> None:
    case, client = examiner.case, examiner.client
    if client.is_out_of_time:
        bound = count_noun(client.bounds.seconds, "second")
        text = f"no further queries were sent after the time limit of {bound}"
        case.gaps.append(state(text, client.last_step))
    left = len(_candidates(case))
    if not left:
        return
    what = f"{count_noun(left, 'related entity', 'related entities')} {WAS[left == 1]}"
    most = f"at most {count_noun(client.bounds.entities, 'entity', 'entities')}"
    depth = f"up to {count_noun(client.bounds.depth, 'step')} from the subject"
    why = f"the investigation examines {most}, {depth}"
    case.gaps.append(state(f"{what} not examined, because {why}", client.last_step))
