"""Attack sequences in the order of ATT&CK's tactics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby

from tocsin import (
    Disposition,
    Entity,
    EntityKind,
    IncidentRecord,
    IncidentStatus,
    Severity,
    Statement,
)
from tocsin_plugins.attack import TACTICS
from tocsin_plugins.investigator.case import CaseFile
from tocsin_plugins.investigator.correlation.connections import (
    find_callbacks,
    find_lateral_movement,
)
from tocsin_plugins.investigator.correlation.drafts import FindingDraft, grade_strength
from tocsin_plugins.investigator.correlation.logons import find_success_after_failures
from tocsin_plugins.investigator.phrases import (
    format_time,
    join_entities,
    shorten,
    state,
)
from tocsin_plugins.investigator.roles import (
    INBOUND,
    OUTBOUND,
    assign_roles,
    find_infected,
    find_origins,
    find_sides,
)
from tocsin_plugins.investigator.sides import Sides
from tocsin_plugins.investigator.signs import (
    AttackSign,
    find_attacks,
    find_incident_signs,
    find_shown_tactics,
)

_STRENGTHS = {2: 0.4, 3: 0.7, 4: 1.0}
_PLACES = {tactic: place for place, tactic in enumerate(TACTICS)}
_SERIOUS = 3
_HELD = frozenset({EntityKind.HOST, EntityKind.USER, EntityKind.MAILBOX, EntityKind.IP})
_TAKES_A_HOST = frozenset({AttackSign.MALWARE, AttackSign.CALLBACK})


@dataclass(frozen=True, slots=True)
class _AttackStage:
    at: datetime
    places: tuple[int, ...]
    source: str
    words: str
    reference: str
    incident: int | None = None
    techniques: tuple[str, ...] = ()


_Chain = tuple[tuple[int, _AttackStage], ...]


def find_attack_sequences(case: CaseFile) -> Iterator[FindingDraft]:
    """Yield the longest sequence of tactics of each entity, each soon after the previous one.

    A sequence needs a common actor: an external entity that is the source of each step, or the
    server that an infected machine calls, or an internal entity that was compromised. A common
    target is none, since unrelated attackers meet there. Entities with the same sequence share a
    finding.
    """
    taken = _taken_over(case)
    runs: dict[_Chain, list[Entity]] = {}
    for entity in case.entities:
        if case.connects(entity) and (case.is_outside(entity) or entity in taken):
            by = taken.get(entity, frozenset())
            chain = _longest(_stages(case, entity, by), case.between_steps)
            if grade_strength(len(chain), _STRENGTHS):
                runs.setdefault(chain, []).append(entity)
    for chain, entities in runs.items():
        yield _build_draft(chain, entities)


def _taken_over(case: CaseFile) -> Mapping[Entity, frozenset[Entity]]:
    """Return the internal entities that are probably compromised, with their attackers if known.

    Signs are a logon that succeeded after failures, a callback, lateral movement, and malware in
    an incident of severity High or above.
    """
    intrusions = [*find_success_after_failures(case), *find_callbacks(case)]
    involved = [intrusion.entities for intrusion in intrusions]
    involved += [
        draft.entities[:1]
        for draft in find_lateral_movement(case)
        if draft.severity is Severity.HIGH
    ]
    for record in case.records:
        if (
            record.severity.rank >= Severity.HIGH.rank
            and find_incident_signs(record) & _TAKES_A_HOST
        ):
            involved.append((*find_infected(case, record), *find_origins(case, record)))
    taken: dict[Entity, frozenset[Entity]] = {}
    roles = assign_roles(case)
    actors = roles.attackers | roles.contacted
    for entities in involved:
        by = {entity for entity in entities if case.is_outside(entity) and entity in actors}
        for held in (entity for entity in entities if entity.kind in _HELD and entity not in by):
            taken[held] = taken.get(held, frozenset()) | by
    return taken


def _stages(case: CaseFile, entity: Entity, by: AbstractSet[Entity]) -> list[_AttackStage]:
    """Return the stages in which an entity acts, or in which its attackers act on it."""
    records = (
        incident
        for incident in case.incidents_with(entity)
        if _counts(case, incident)
        and _is_actor(case, entity, by, find_sides(case, incident), find_attacks(incident))
    )
    stages = [
        _AttackStage(
            at=record.occurred_at,
            places=_places(find_incident_signs(record), record.techniques),
            source=f"incident {record.number}",
            words=record.title,
            reference=f"incident:{record.number}",
            incident=record.number,
            techniques=record.techniques,
        )
        for record in records
    ]
    for seen in case.events_with(entity):
        if seen.signs and _is_actor(case, entity, by, seen.sides, seen.signs):
            places, source = _places(seen.signs), f"an event from provider {seen.provider}"
            stage = (seen.event.occurred_at, places, source, seen.event.summary, seen.step)
            stages.append(_AttackStage(*stage))
    with_places = (stage for stage in stages if stage.places)
    return sorted(with_places, key=lambda stage: (stage.at, stage.reference, stage.words))


def _is_actor(
    case: CaseFile,
    entity: Entity,
    by: AbstractSet[Entity],
    sides: Sides,
    signs: AbstractSet[AttackSign],
) -> bool:
    """Return whether a stage belongs to an entity, and not to somebody who attacks it as well."""
    if entity in sides.sources:
        return True
    if case.is_outside(entity):
        is_called = signs & OUTBOUND and not signs & INBOUND
        return bool(is_called) and entity in sides.targets
    if foreign := {source for source in sides.sources if case.is_outside(source)}:
        return bool(foreign & by)
    return entity not in sides.targets or bool(sides.targets & by)


def _counts(case: CaseFile, record: IncidentRecord) -> bool:
    """Return whether an incident may be a stage.

    Closed incidents outside the query do not count, nor incidents with only benign origins.
    """
    if record.status is IncidentStatus.CLOSED and record.number not in case.scope.incidents:
        return False
    by = find_origins(case, record)
    return not by or any(case.find_disposition(origin) is not Disposition.BENIGN for origin in by)


def _places(signs: frozenset[AttackSign], techniques: tuple[str, ...] = ()) -> tuple[int, ...]:
    return tuple(
        sorted(
            _PLACES[tactic] for tactic in find_shown_tactics(signs, techniques) if tactic in _PLACES
        )
    )


def _longest(stages: Sequence[_AttackStage], within: timedelta) -> _Chain:
    """Return the longest chain of stages with increasing tactics at increasing times.

    For each length and final tactic, only the chain that ends latest is extended. The first of
    equally long chains is returned.
    """
    ends: dict[tuple[int, int], _Chain] = {}
    longest: _Chain = ()
    for moment, at_once in groupby(stages, key=lambda stage: stage.at):
        grown = [
            (*_before(ends, place, moment - within), (place, stage))
            for stage in at_once
            for place in stage.places
        ]
        for chain in grown:
            ends[chain[-1][0], len(chain)] = chain
            longest = max(longest, chain, key=len)
    return longest


def _before(ends: Mapping[tuple[int, int], _Chain], place: int, since: datetime) -> _Chain:
    """Return the longest chain that a tactic can extend, of those that ended late enough."""
    fitting = (
        chain
        for (last, _), chain in sorted(ends.items())
        if last < place and chain[-1][1].at >= since
    )
    return max(fitting, key=len, default=())


def _build_draft(chain: _Chain, entities: Sequence[Entity]) -> FindingDraft:
    tactics = [TACTICS[place] for place, _ in chain]
    stages = [stage for _, stage in chain]
    techniques = {technique for stage in stages for technique in stage.techniques}
    incidents = {stage.incident for stage in stages if stage.incident is not None}
    whose = join_entities(entities, 3)
    return FindingDraft(
        title=f"{len(chain)}-step attack sequence involving {whose}: " + ", ".join(tactics),
        severity=Severity.HIGH if len(chain) >= _SERIOUS else Severity.MEDIUM,
        strength=grade_strength(len(chain), _STRENGTHS),
        statements=tuple(_statement(place, stage) for place, stage in chain),
        entities=tuple(entities),
        incidents=tuple(sorted(incidents)),
        techniques=tuple(sorted(techniques)),
    )


def _statement(place: int, stage: _AttackStage) -> Statement:
    record = f"{stage.source} (“{shorten(stage.words)}”)"
    return state(f"on {format_time(stage.at)}, {record} shows {TACTICS[place]}", stage.reference)
