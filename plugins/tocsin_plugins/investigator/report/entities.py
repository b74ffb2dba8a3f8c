"""Assessments of the examined entities, and the relations between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tocsin import Disposition, Enrichment, Entity, EntityAssessment, Relation, Sighting, Statement
from tocsin_plugins.investigator.case import CaseFile
from tocsin_plugins.investigator.evidence import Opinion, cite_steps
from tocsin_plugins.investigator.phrases import (
    count_noun,
    format_time,
    join_names,
    name_entity,
    name_incidents,
    shorten,
    state,
)
from tocsin_plugins.investigator.roles import find_sides
from tocsin_plugins.investigator.sides import Sides

_MOST_RELATIONS = 300
_LATEST = 3
_MOST_TAGS = 8
_BY_ASSOCIATION = "known-by-association"
_OF_OUR_OWN = (  # the facts of the history and graph enrichers
    {"incident_count", "first_seen", "last_seen", "recent"},
    {"incidents", "incidents_of_related", "related", "complete"},
)


def build_assessments(case: CaseFile) -> tuple[EntityAssessment, ...]:
    """Return the assessment of each entity, the nearest first."""
    sides = {record.number: find_sides(case, record) for record in case.records}
    return tuple(_assessment(case, entity, sides) for entity in case.entities)


def build_relations(case: CaseFile) -> tuple[Relation, ...]:
    """Return the relations between the examined entities, each type once, at its earliest."""
    ties: dict[tuple[Entity, str, Entity], Relation] = {}
    for seen in case.relations:
        relation = seen.relation
        if relation.source in case.depths and relation.target in case.depths:
            key = (relation.source, relation.type.value, relation.target)
            ties[key] = _earlier(ties.get(key), relation)
    return tuple(ties.values())[:_MOST_RELATIONS]


def _earlier(known: Relation | None, other: Relation) -> Relation:
    if known is None or known.at is None:
        return other
    return other if other.at and other.at < known.at else known


def _assessment(case: CaseFile, entity: Entity, sides: Mapping[int, Sides]) -> EntityAssessment:
    sighting = case.find_sighting(entity)
    return EntityAssessment(
        entity=entity,
        disposition=case.find_disposition(entity),
        internal=sighting.internal,
        well_known=sighting.well_known,
        depth=case.depths[entity],
        incident_count=sighting.incident_count,
        first_seen=sighting.first_seen,
        last_seen=sighting.last_seen,
        statements=tuple(_statements(case, entity, sides)),
    )


def _statements(case: CaseFile, entity: Entity, sides: Mapping[int, Sides]) -> Iterator[Statement]:
    yield from describe_sighting(case, entity, with_times=False)  # the assessment has the times
    yield from _describe_roles(case, entity, sides)
    for opinion in case.find_opinions(entity):
        if not _is_said_already(opinion):
            text = f"according to {opinion.called}: {shorten(opinion.enrichment.summary, 300)}"
            yield state(f"{text}{_describe_tags(opinion.enrichment)}", opinion.step)


def _describe_roles(
    case: CaseFile, entity: Entity, sides: Mapping[int, Sides]
) -> Iterator[Statement]:
    """Yield a sentence about the incidents in which an entity is the source or the target."""
    numbers = [record.number for record in case.incidents_with(entity)]
    sources = [number for number in numbers if entity in sides[number].sources]
    targets = [number for number in numbers if entity in sides[number].targets]
    roles = [
        f"{role} in {name_incidents(some, _LATEST)}"
        for role, some in (("a source", sources), ("a target", targets))
        if some
    ]
    if roles:
        evidence = [f"incident:{number}" for number in (*sources, *targets)]
        yield state(f"{name_entity(entity)} is {' and '.join(roles)}", *evidence)


def _describe_tags(enrichment: Enrichment) -> str:
    """Return the tags that the summary does not mention, in parentheses; empty without any."""
    said = enrichment.summary.casefold()
    tags = [
        shorten(tag, 60)
        for tag in enrichment.tags
        if tag != _BY_ASSOCIATION and tag.casefold() not in said
    ]
    return f" (tags: {', '.join(tags[:_MOST_TAGS])})" if tags else ""


def _is_said_already(opinion: Opinion) -> bool:
    """Return whether an opinion adds nothing to sightings and relations."""
    enrichment = opinion.enrichment
    judges = enrichment.disposition is not Disposition.UNKNOWN or _BY_ASSOCIATION in enrichment.tags
    facts = enrichment.facts.keys()
    return bool(facts) and not judges and any(facts <= known for known in _OF_OUR_OWN)


def describe_sighting(
    case: CaseFile, entity: Entity, *, with_times: bool = True
) -> Iterator[Statement]:
    """Yield a sentence about the sightings of an entity, if there are any."""
    sighting, step = case.sightings.get(entity, (None, ""))
    if sighting is None:
        return
    events = case.events_with(entity)
    found = count_noun(len(events), "event") if events else ""
    times = _since(sighting) if with_times else ""
    latest = [number for number in sighting.recent[:_LATEST] if number in case.incidents]
    evidence = [step, *(f"incident:{number}" for number in latest), *cite_steps(events)]
    text = f"{name_entity(entity)} appears {_records(sighting, times, found)}"
    yield state(text, *evidence)


def _records(sighting: Sighting, times: str, events: str) -> str:
    """Return the number of incidents and events with an entity, and the latest incidents."""
    also = f"{',' if times else ''} and in {events}" if events else ""
    if not sighting.incident_count:
        return f"in no incident, but in {events}" if events else "in no incident"
    numbers = [str(number) for number in sighting.recent[:_LATEST]]
    if sighting.incident_count == len(numbers) == 1:
        return f"only in incident {numbers[0]}{times}{also}"
    latest = f" (latest: {join_names(numbers)})" if numbers else ""
    return f"in {count_noun(sighting.incident_count, 'incident')}{latest}{times}{also}"


def _since(sighting: Sighting) -> str:
    if not sighting.first_seen or not sighting.last_seen:
        return ""
    first, last = format_time(sighting.first_seen), format_time(sighting.last_seen)
    return f", on {first}" if first == last else f", first on {first} and last on {last}"
