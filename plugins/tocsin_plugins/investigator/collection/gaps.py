"""Gaps: missing evidence, and similar spellings of unknown names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tocsin import Entity, EntityKind, GetIncidents, IncidentRecord, SearchHistory, Statement
from tocsin_plugins.investigator.case import CaseFile, cite_incidents
from tocsin_plugins.investigator.collection.examination import (
    EntityExaminer,
    has_events_for,
    is_pivot,
)
from tocsin_plugins.investigator.evidence import entity_sort_key
from tocsin_plugins.investigator.phrases import (
    join_entities,
    join_names,
    name_entity,
    name_incidents,
    name_source,
    state,
)
from tocsin_plugins.investigator.roles import INBOUND, find_sides
from tocsin_plugins.investigator.signs import AttackSign, find_attacks

_GUESSING = frozenset({AttackSign.FAILED_LOGON, AttackSign.BRUTE_FORCE})
_LOGGED = frozenset(EntityKind) - {EntityKind.CVE}
"""Entity kinds that events name; no events are expected for vulnerabilities."""


def note_gaps(examiner: EntityExaminer) -> None:
    """Note missing evidence as gaps."""
    case = examiner.case
    case.gaps[:0] = [
        *_environment(examiner),
        *_directions(case),
        *_outcomes(case),
        *_unrated(examiner),
        *_not_asked(examiner),
    ]


def find_unknown_logons(case: CaseFile) -> list[IncidentRecord]:
    """Return the incidents in focus with failed logons, if no event shows a successful one.

    A lack of successes proves nothing, since many SIEMs keep only events of failures.
    """
    return [
        record
        for record in case.in_focus
        if find_attacks(record) & _GUESSING and not _succeeded(case, record)
    ]


def _environment(examiner: EntityExaminer) -> Iterator[Statement]:
    if not examiner.sources.names_networks:
        text = "your networks are not configured, so only private addresses count as internal"
        how = "List all your networks as `internal_networks` in `[environment]` in plugins.toml"
        yield state(f"{text}. {how}", examiner.sources_step)


def _directions(case: CaseFile) -> Iterator[Statement]:
    """Yield a gap for attacks of which no source and target are known."""
    records = [
        record
        for record in case.in_focus
        if find_attacks(record) & INBOUND and not find_sides(case, record).is_known
    ]
    if records:
        which = name_incidents(record.number for record in records)
        why = "because the SIEM does not specify a source or a target"
        text = f"it is unknown who attacked whom in {which}, {why}"
        yield state(text, *cite_incidents(records))


def _succeeded(case: CaseFile, record: IncidentRecord) -> bool:
    events = (seen for entity in record.entities for seen in case.events_with(entity))
    return any(AttackSign.LOGON in seen.signs for seen in events)


def _outcomes(case: CaseFile) -> Iterator[Statement]:
    if records := find_unknown_logons(case):
        which = name_incidents(record.number for record in records)
        why = "because no event shows a successful logon"
        text = f"it is unknown whether a logon succeeded in {which}, {why}"
        yield state(text, *cite_incidents(records))


def _unrated(examiner: EntityExaminer) -> Iterator[Statement]:
    """Yield a gap for external entities that no reputation source could be asked about."""
    case = examiner.case
    online = [enricher for enricher in examiner.sources.enrichers if enricher.online]
    rated = {kind for enricher in online for kind in enricher.kinds}
    outside = [
        entity
        for entity in case.asked_entities
        if case.is_outside(entity) and entity.kind not in rated
    ]
    if outside:
        why = _NONE_FITS if online else _NONE_ENABLED
        text = f"no reputation source was queried about {join_entities(outside)}, because {why}"
        yield state(text, examiner.sources_step)


_NONE_ENABLED = "no online enricher is enabled"
_NONE_FITS = "no enabled online enricher supports entities of this kind"


def _not_asked(examiner: EntityExaminer) -> Iterator[Statement]:
    """Yield a gap for entities that no available provider can search events for."""
    asked = [
        provider
        for provider in examiner.selected_providers
        if provider.answers_events and not provider.reason
    ]
    followed = [
        entity for entity in examiner.case.asked_entities if is_pivot(examiner.case, entity)
    ]
    left = _without_events(examiner, followed)
    if asked and left:
        who = join_names([name_source(f"provider:{provider.name}") for provider in asked])
        text = f"{who} cannot search for events that involve {join_entities(left)}"
        yield state(text, examiner.sources_step)


def _without_events(examiner: EntityExaminer, entities: Iterable[Entity]) -> list[Entity]:
    return [
        entity
        for entity in entities
        if entity.kind in _LOGGED
        and not any(has_events_for(provider, entity) for provider in examiner.selected_providers)
    ]


_NAMES = frozenset({EntityKind.USER, EntityKind.HOST, EntityKind.MAILBOX})
_PARTS = re.compile(r"[\\/@.]")
_MOST = 10


async def suggest_spellings(examiner: EntityExaminer) -> None:
    """Note as a gap each named user or host that is unknown, with similar names."""
    for entity in examiner.case.scope.entities:
        if entity.kind in _NAMES and _is_unknown(examiner.case, entity):
            await _suggest(examiner, entity)


def _is_unknown(case: CaseFile, entity: Entity) -> bool:
    is_met = case.incidents_with(entity) or case.events_with(entity)
    return not is_met and not case.find_sighting(entity).incident_count


async def _suggest(examiner: EntityExaminer, entity: Entity) -> None:
    matching = await examiner.client.ask(SearchHistory(text=entity.value))
    numbers = [int(match.id) for match in matching.content or () if match.kind == "incident"]
    if not numbers:
        return
    answer = await examiner.client.ask(GetIncidents(numbers=tuple(numbers[:_MOST])))
    records = [record for record in answer.content or () if _alike(entity, record.entities)]
    if alike := sorted(
        {other for record in records for other in _alike(entity, record.entities)},
        key=entity_sort_key,
    ):
        text = f"{name_entity(entity)} is unknown. Similar names: {join_entities(alike)}"
        examiner.case.gaps.insert(
            0, state(text, matching.step, answer.step, *cite_incidents(records))
        )


def _alike(entity: Entity, others: tuple[Entity, ...]) -> set[Entity]:
    """Return the other names that contain the entity's value as a part."""
    wanted = entity.value.lower()
    return {
        other
        for other in others
        if other.kind in _NAMES and wanted in _PARTS.split(other.value.lower())
    } - {entity}
