"""Rhythm: much at once, and what comes back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from tocsin import Entity, Severity
from tocsin_plugins.investigator.case import Case, cite_incidents
from tocsin_plugins.investigator.correlating.found import FindingDraft, grade_strength
from tocsin_plugins.investigator.wording import at, counted, listed, named, say

_AT_ONCE = timedelta(minutes=5)
_BURSTS = {10: 0.6, 30: 0.8, 100: 1.0}
_DAYS = {3: 0.6, 5: 1.0}

_Moment = tuple[datetime, str]


def find_bursts(case: Case) -> Iterator[FindingDraft]:
    """Yield each stretch of five minutes with 10 events and incidents or more, and whose it is."""
    stretches: dict[tuple[_Moment, ...], list[Entity]] = {}
    for entity in case.entities:
        densest = tuple(_densest(_moments(case, entity)))
        if grade_strength(len(densest), _BURSTS) and not case.find_sighting(entity).well_known:
            stretches.setdefault(densest, []).append(entity)
    for moments, entities in stretches.items():
        number, whose = counted(len(moments), "record"), listed([named(it) for it in entities])
        text = f"from {at(moments[0][0])} to {at(moments[-1][0])} there are {number} of {whose}"
        yield FindingDraft(
            title=f"{number} of {whose} within five minutes",
            severity=Severity.LOW,
            strength=grade_strength(len(moments), _BURSTS),
            statements=(say(text, *(reference for _, reference in moments)),),
            entities=tuple(entities),
        )


def find_recurrences(case: Case) -> Iterator[FindingDraft]:
    """Yield each entity from outside that is in incidents of 3 days or more."""
    for entity in case.entities:
        records = case.incidents_with(entity)
        days = sorted({record.occurred_at.astimezone(UTC).date() for record in records})
        strength = grade_strength(len(days), _DAYS)
        if strength and case.is_outside(entity):
            number, span = counted(len(days), "day"), f"from {days[0]} to {days[-1]}"
            text = f"{named(entity)} is in {counted(len(records), 'incident')} on {number}, {span}"
            yield FindingDraft(
                title=f"{named(entity)} came back on {number}",
                severity=Severity.LOW,
                strength=strength,
                statements=(say(text, *cite_incidents(records)),),
                entities=(entity,),
                incidents=tuple(sorted(record.number for record in records)),
            )


def _moments(case: Case, entity: Entity) -> list[_Moment]:
    events = [(seen.event.occurred_at, seen.step) for seen in case.events_with(entity)]
    records = case.incidents_with(entity)
    return sorted(events + [(it.occurred_at, f"incident:{it.number}") for it in records])


def _densest(moments: Sequence[_Moment]) -> Sequence[_Moment]:
    """Return the first stretch of five minutes that holds the most."""
    begin, best = 0, moments[:0]
    for end, (moment, _) in enumerate(moments, 1):
        while moment - moments[begin][0] > _AT_ONCE:
            begin += 1
        if end - begin > len(best):
            best = moments[begin:end]
    return best
