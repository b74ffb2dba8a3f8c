"""Frequency: shared entities, novelty, bursts and recurrence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from tocsin import Entity, EntityKind, Severity, Sighting
from tocsin_plugins.investigator.case import CaseFile, cite_incidents
from tocsin_plugins.investigator.correlation.drafts import FindingDraft, grade_strength
from tocsin_plugins.investigator.phrases import (
    count_noun,
    format_time,
    join_entities,
    join_names,
    name_entity,
    name_incidents,
    state,
)
from tocsin_plugins.investigator.roles import assign_roles

_STRENGTHS = {2: 0.5, 3: 0.75, 4: 1.0}


def find_shared_entities(case: CaseFile) -> Iterator[FindingDraft]:
    """Yield the entities that two or more incidents share, grouped by incidents.

    Well-known entities and infrastructure are left out, and victims, at whom unrelated attackers
    meet, unless an attacker got into them.
    """
    roles = assign_roles(case)
    victims = roles.victims - roles.attackers - roles.infected - roles.entered
    groups: dict[tuple[int, ...], list[Entity]] = {}
    for entity in case.entities:
        numbers = tuple(record.number for record in case.incidents_with(entity))
        is_shared = grade_strength(len(numbers), _STRENGTHS) and case.connects(entity)
        if is_shared and entity not in victims:
            groups.setdefault(numbers, []).append(entity)
    for numbers, entities in groups.items():
        yield _draft_sharing(case, numbers, entities)


def _draft_sharing(
    case: CaseFile, numbers: tuple[int, ...], entities: list[Entity]
) -> FindingDraft:
    incidents = [case.incidents[number] for number in numbers]
    what, appear = join_entities(entities), "appears" if len(entities) == 1 else "appear"
    providers = sorted({record.provider for record in incidents})
    reporters = f"providers {join_names(providers)}"
    origin = f". They were reported by {reporters}" if len(providers) > 1 else ""
    text = f"{name_incidents(sorted(numbers))} involve {what}{origin}"
    return FindingDraft(
        title=f"{what} {appear} in {count_noun(len(numbers), 'incident')}",
        severity=Severity.MEDIUM if len(providers) > 1 else Severity.LOW,
        strength=grade_strength(len(numbers), _STRENGTHS),
        statements=(state(text, *cite_incidents(incidents)),),
        entities=tuple(entities),
        incidents=tuple(sorted(numbers)),
    )


_SELDOM = 2
_NEAREST = 1
_TELLING = frozenset(EntityKind) - {EntityKind.CVE, EntityKind.USER}


def find_first_seen(case: CaseFile) -> Iterator[FindingDraft]:
    """Yield each external entity that was first seen in the time window, unless it is a victim.

    The number of its incidents since then does not matter.
    """
    victims = assign_roles(case).victims
    for entity, sighting, step in _met(case):
        if (
            entity not in victims
            and sighting.first_seen
            and sighting.first_seen in case.window
            and case.is_outside(entity)
        ):
            text = f"{name_entity(entity)} was first seen on {format_time(sighting.first_seen)}"
            yield _draft_novelty(
                case, entity, f"{name_entity(entity)} is new to Tocsin", text, step
            )


def find_rare_entities(case: CaseFile) -> Iterator[FindingDraft]:
    """Yield each entity that was known before, and is in at most two incidents in total."""
    for entity, sighting, step in _met(case):
        known_before = sighting.first_seen and sighting.first_seen < case.window.start
        if known_before and sighting.first_seen and sighting.incident_count <= _SELDOM:
            number = count_noun(sighting.incident_count, "incident")
            since = format_time(sighting.first_seen)
            text = f"{name_entity(entity)} has appeared in only {number} since {since}"
            yield _draft_novelty(case, entity, f"{name_entity(entity)} is rare", text, step)


def _met(case: CaseFile) -> Iterator[tuple[Entity, Sighting, str]]:
    """Yield the entities near the subject that are in at least one incident."""
    for entity in case.entities:
        sighting, step = case.sightings.get(entity, (None, ""))
        is_telling = entity.kind in _TELLING and case.depths[entity] <= _NEAREST
        if sighting and sighting.incident_count and is_telling and not sighting.well_known:
            yield entity, sighting, step


def _draft_novelty(
    case: CaseFile, entity: Entity, title: str, text: str, step: str
) -> FindingDraft:
    return FindingDraft(
        title=title,
        severity=Severity.INFORMATIONAL,
        strength=1.0,
        statements=(state(text, step),),
        entities=(entity,),
        incidents=tuple(record.number for record in case.incidents_with(entity)),
    )


_AT_ONCE = timedelta(minutes=5)
_BURSTS = {10: 0.6, 30: 0.8, 100: 1.0}
_DAYS = {3: 0.6, 5: 1.0}

_Moment = tuple[datetime, str]


def find_bursts(case: CaseFile) -> Iterator[FindingDraft]:
    """Yield each period of five minutes with 10 or more events and incidents, with its entities."""
    periods: dict[tuple[_Moment, ...], list[Entity]] = {}
    for entity in case.entities:
        densest = tuple(_densest(_moments(case, entity)))
        if grade_strength(len(densest), _BURSTS) and not case.find_sighting(entity).well_known:
            periods.setdefault(densest, []).append(entity)
    for moments, entities in periods.items():
        number, whose = f"{len(moments):,} events and incidents", join_entities(entities)
        span = f"from {format_time(moments[0][0])} to {format_time(moments[-1][0])}"
        text = f"{number} {span} involve {whose}"
        yield FindingDraft(
            title=f"{number} within five minutes involve {whose}",
            severity=Severity.LOW,
            strength=grade_strength(len(moments), _BURSTS),
            statements=(state(text, *(reference for _, reference in moments)),),
            entities=tuple(entities),
        )


def find_recurrences(case: CaseFile) -> Iterator[FindingDraft]:
    """Yield each external entity that is in incidents on 3 or more days, unless it is a victim."""
    victims = assign_roles(case).victims
    for entity in case.entities:
        records = case.incidents_with(entity)
        days = sorted({record.occurred_at.astimezone(UTC).date() for record in records})
        strength = grade_strength(len(days), _DAYS)
        if strength and case.is_outside(entity) and entity not in victims:
            number, span = f"{len(days)} different days", f"from {days[0]} to {days[-1]}"
            incidents = count_noun(len(records), "incident")
            text = f"{name_entity(entity)} appears in {incidents} on {number}, {span}"
            yield FindingDraft(
                title=f"{name_entity(entity)} appeared on {number}",
                severity=Severity.LOW,
                strength=strength,
                statements=(state(text, *cite_incidents(records)),),
                entities=(entity,),
                incidents=tuple(sorted(record.number for record in records)),
            )


def _moments(case: CaseFile, entity: Entity) -> list[_Moment]:
    events = [(seen.event.occurred_at, seen.step) for seen in case.events_with(entity)]
    records = case.incidents_with(entity)
    return sorted(
        events + [(record.occurred_at, f"incident:{record.number}") for record in records]
    )


def _densest(moments: Sequence[_Moment]) -> Sequence[_Moment]:
    """Return the first period of five minutes with the most moments."""
    begin, best = 0, moments[:0]
    for end, (moment, _) in enumerate(moments, 1):
        while moment - moments[begin][0] > _AT_ONCE:
            begin += 1
        if end - begin > len(best):
            best = moments[begin:end]
    return best
