"""Gaps: missing evidence, and similar spellings of unknown names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from tocsin import Entity, EntityKind, GetIncidents, IncidentRecord, SearchHistory, Statement
from tocsin_plugins.investigator.case import Case, cite_incidents
from tocsin_plugins.investigator.collection.examination import (
    EntityExaminer,
    has_events_for,
    is_pivot,
)
from tocsin_plugins.investigator.evidence import entity_sort_key
from tocsin_plugins.investigator.phrases import asked_called, listed, named, say, together
from tocsin_plugins.investigator.signs import AttackSign, find_attacks

_GUESSING = frozenset({AttackSign.FAILED_LOGON, AttackSign.BRUTE_FORCE})
_LOGGED = frozenset(EntityKind) - {EntityKind.CVE}
"""What events name; of a vulnerability none is expected."""


def note_gaps(examiner: EntityExaminer) -> None:
    """Note as gaps what the report would be surer with."""
    case = examiner.case
    case.gaps[:0] = [*_outcomes(case), *_unrated(examiner), *_not_asked(examiner)]


def find_unknown_logons(case: Case) -> list[IncidentRecord]:
    """Return the incidents asked about that tell of failed logons, where no event tells of others.

    Events of failures alone say nothing of that: many a SIEM keeps no other.
    """
    return [it for it in case.in_focus if find_attacks(it) & _GUESSING and not _succeeded(case, it)]


def _succeeded(case: Case, record: IncidentRecord) -> bool:
    events = (seen for entity in record.entities for seen in case.events_with(entity))
    return any(AttackSign.LOGON in seen.signs for seen in events)


def _outcomes(case: Case) -> Iterator[Statement]:
    if records := find_unknown_logons(case):
        which = listed([f"incident {record.number}" for record in records])
        text = f"whether a logon succeeded in {which} is not known: no event tells of one"
        yield say(text, *cite_incidents(records))


def _unrated(examiner: EntityExaminer) -> Iterator[Statement]:
    """Yield of which entities from outside no source of reputation could be asked."""
    case = examiner.case
    online = [enricher for enricher in examiner.sources.enrichers if enricher.online]
    rated = {kind for enricher in online for kind in enricher.kinds}
    outside = [it for it in _list_asked(case) if case.is_outside(it) and it.kind not in rated]
    if outside:
        why = "no enabled online enricher knows their kinds" if online else _NONE_ENABLED
        text = f"no source of reputation was asked about {together(outside)}: {why}"
        yield say(text, examiner.sources_step)


_NONE_ENABLED = "no online enricher is enabled"


def _not_asked(examiner: EntityExaminer) -> Iterator[Statement]:
    """Yield of which entities none of the providers that answer can be asked for events."""
    asked = [it for it in examiner.meant if it.answers_events and not it.reason]
    followed = [it for it in _list_asked(examiner.case) if is_pivot(examiner.case, it)]
    left = _without_events(examiner, followed)
    if asked and left:
        who = listed([asked_called(f"provider:{it.name}") for it in asked])
        text = f"{who} cannot be asked for events of {together(left)}"
        yield say(text, examiner.sources_step)


def _without_events(examiner: EntityExaminer, entities: Iterable[Entity]) -> list[Entity]:
    return [
        entity
        for entity in entities
        if entity.kind in _LOGGED
        and not any(has_events_for(provider, entity) for provider in examiner.meant)
    ]


def _list_asked(case: Case) -> Sequence[Entity]:
    return [entity for entity in case.entities if case.depths[entity] == 0]


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
        other
        for other in others
        if other.kind in _NAMES and wanted in _PARTS.split(other.value.lower())
    } - {entity}
