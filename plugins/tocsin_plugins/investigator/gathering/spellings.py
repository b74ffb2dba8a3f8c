"""How a name that nobody knows may be spelled here."""

from __future__ import annotations

import re

from tocsin import Entity, EntityKind, GetIncidents, SearchHistory
from tocsin_plugins.investigator.case import Case, cite_incidents
from tocsin_plugins.investigator.gathering.rounds import EntityExaminer
from tocsin_plugins.investigator.seen import entity_sort_key
from tocsin_plugins.investigator.wording import named, say, together

_NAMES = frozenset({EntityKind.USER, EntityKind.HOST, EntityKind.MAILBOX})
_PARTS = re.compile(r"[\\/@.]")
_MOST = 10


async def suggest_spellings(examiner: EntityExaminer) -> None:
    """Note as a gap each user or host that is named and unknown, and who is called alike."""
    for entity in examiner.case.scope.entities:
        if entity.kind in _NAMES and _is_unknown(examiner.case, entity):
            await _suggest(examiner, entity)


def _is_unknown(case: Case, entity: Entity) -> bool:
    is_met = case.incidents_with(entity) or case.events_with(entity)
    return not is_met and not case.find_sighting(entity).incident_count


async def _suggest(examiner: EntityExaminer, entity: Entity) -> None:
    matching = await examiner.asking.ask(SearchHistory(text=entity.value))
    numbers = [int(it.id) for it in matching.content or () if it.kind == "incident"]
    if not numbers:
        return
    answer = await examiner.asking.ask(GetIncidents(numbers=tuple(numbers[:_MOST])))
    records = [it for it in answer.content or () if _alike(entity, it.entities)]
    if alike := sorted(
        {it for record in records for it in _alike(entity, record.entities)}, key=entity_sort_key
    ):
        text = f"nothing is known here of {named(entity)}; known here is {together(alike)}"
        examiner.case.gaps.insert(
            0, say(text, matching.step, answer.step, *cite_incidents(records))
        )


def _alike(entity: Entity, others: tuple[Entity, ...]) -> set[Entity]:
    """Return which others are names too, and have what is asked for as a part."""
    wanted = entity.value.lower()
    return {
        it for it in others if it.kind in _NAMES and wanted in _PARTS.split(it.value.lower())
    } - {entity}
