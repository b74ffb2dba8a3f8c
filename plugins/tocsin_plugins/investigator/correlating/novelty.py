"""Novelty: entities that were never seen before, or seldom."""

from __future__ import annotations

from collections.abc import Iterator

from tocsin import Entity, EntityKind, Severity, Sighting
from tocsin_plugins.investigator.case import Case
from tocsin_plugins.investigator.correlating.found import FindingDraft
from tocsin_plugins.investigator.wording import at, counted, named, say

_SELDOM = 2
_NEAREST = 1
_TELLING = frozenset(EntityKind) - {EntityKind.CVE, EntityKind.USER}


def find_first_seen(case: Case) -> Iterator[FindingDraft]:
    """Yield each entity from outside that was first seen within the time looked at.

    In how many incidents it has been since makes no difference.
    """
    for entity, sighting, step in _met(case):
        if sighting.first_seen and sighting.first_seen in case.window and case.is_outside(entity):
            text = f"{named(entity)} was first seen at {at(sighting.first_seen)}"
            yield _draft_novelty(case, entity, f"{named(entity)} was never seen before", text, step)


def find_rare_entities(case: Case) -> Iterator[FindingDraft]:
    """Yield each entity that was known before, and is in no more than two incidents of all."""
    for entity, sighting, step in _met(case):
        known_before = sighting.first_seen and sighting.first_seen < case.window.start
        if known_before and sighting.first_seen and sighting.incident_count <= _SELDOM:
            number = counted(sighting.incident_count, "incident")
            text = f"{named(entity)} is in {number} since {at(sighting.first_seen)}"
            yield _draft_novelty(case, entity, f"{named(entity)} is seldom seen", text, step)


def _met(case: Case) -> Iterator[tuple[Entity, Sighting, str]]:
    """Yield what is near to what was asked, and was in an incident at least once."""
    for entity in case.entities:
        sighting, step = case.sightings.get(entity, (None, ""))
        is_telling = entity.kind in _TELLING and case.depths[entity] <= _NEAREST
        if sighting and sighting.incident_count and is_telling and not sighting.well_known:
            yield entity, sighting, step


def _draft_novelty(case: Case, entity: Entity, title: str, text: str, step: str) -> FindingDraft:
    return FindingDraft(
        title=title,
        severity=Severity.INFORMATIONAL,
        strength=1.0,
        statements=(say(text, step),),
        entities=(entity,),
        incidents=tuple(record.number for record in case.incidents_with(entity)),
    )
