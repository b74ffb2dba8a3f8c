"""Connections: callbacks to malicious entities, and lateral movement."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tocsin import Disposition, Entity, EntityKind, IncidentRecord, RelationType, Severity
from tocsin_plugins.investigator.case import CaseFile
from tocsin_plugins.investigator.correlation.drafts import FindingDraft, grade_strength
from tocsin_plugins.investigator.evidence import SeenRelation, cite_steps, entity_sort_key
from tocsin_plugins.investigator.phrases import count_noun, join_entities, name_entity, state
from tocsin_plugins.investigator.roles import find_sides
from tocsin_plugins.investigator.signs import AttackSign, find_attacks

_CONTACTS = frozenset(
    {
        RelationType.CONNECTED_TO,
        RelationType.DOWNLOADED_FROM,
        RelationType.RESOLVES_TO,
        RelationType.SENT_TO,
        RelationType.STARTED,
    }
)
_CALLBACK_STRENGTHS = {1: 0.8, 2: 1.0}


def find_callbacks(case: CaseFile) -> Iterator[FindingDraft]:
    """Yield each malicious entity that internal hosts or addresses contacted.

    Two of them, or one that a SIEM reports for it, count in full.
    """
    for target in case.entities:
        if case.find_disposition(target) is not Disposition.MALICIOUS or case.is_ours(target):
            continue
        contacts = _contacts(case, target)
        number = len(contacts) + bool(contacts and _detections(case, target))
        if strength := grade_strength(number, _CALLBACK_STRENGTHS):
            ours = sorted(contacts, key=entity_sort_key)
            evidence = sorted({step for steps in contacts.values() for step in steps})
            who = join_entities(ours)
            yield FindingDraft(
                title=f"{count_noun(len(ours), 'internal entity', 'internal entities')} contacted "
                f"{name_entity(target)}, which is reported as malicious",
                severity=Severity.HIGH,
                strength=strength,
                statements=(state(f"{who} contacted {name_entity(target)}", *evidence),),
                entities=(target, *ours),
                incidents=tuple(record.number for record in case.incidents_with(target)),
            )


def _contacts(case: CaseFile, target: Entity) -> dict[Entity, list[str]]:
    """Return the internal entities that contacted the target, with their evidence.

    The source of a connection or of a detected callback made the contact; a machine that is merely
    named with it, such as a sensor, did not.
    """
    contacts: defaultdict[Entity, list[str]] = defaultdict(list)
    for seen in case.relations_to(target):
        if seen.relation.type in _CONTACTS:
            contacts[seen.relation.source] += cite_steps([seen])
    for event in case.events_with(target):
        if AttackSign.CALLBACK in event.signs:
            for entity in event.sides.sources:
                contacts[entity].append(event.step)
    for record in _detections(case, target):
        for entity in find_sides(case, record).sources:
            contacts[entity].append(f"incident:{record.number}")
    return {
        entity: steps
        for entity, steps in contacts.items()
        if case.is_ours(entity) and not case.find_sighting(entity).well_known
    }


def _detections(case: CaseFile, target: Entity) -> list[IncidentRecord]:
    """Return the incidents that report a callback to the target."""
    return [
        record
        for record in case.incidents_with(target)
        if AttackSign.CALLBACK in find_attacks(record)
    ]


_ORIGINS = frozenset({EntityKind.IP, EntityKind.USER, EntityKind.HOST})
_REACHED = frozenset({EntityKind.IP, EntityKind.HOST})
_HOST_STRENGTHS = {3: 0.6, 5: 1.0}
_BY_LOGON = frozenset({RelationType.LOGGED_ON_TO, RelationType.EXECUTED_ON})
_CONNECTED = 0.5
"""Plain connections count half as much as logons and executions."""


def find_lateral_movement(case: CaseFile) -> Iterator[FindingDraft]:
    """Yield each address, user or host that logged on to, or ran something on, 3 internal hosts.

    An external origin that only connected to as many counts half.
    """
    for origin in case.entities:
        if origin.kind not in _ORIGINS or case.find_sighting(origin).well_known:
            continue
        reached = _reached(case, origin, _BY_LOGON)
        strength = grade_strength(len(reached), _HOST_STRENGTHS)
        if not strength and case.is_outside(origin):
            reached = _reached(case, origin, frozenset({RelationType.CONNECTED_TO}))
            strength = grade_strength(len(reached), _HOST_STRENGTHS) * _CONNECTED
        if strength:
            yield _draft_movement(origin, reached, strength)


def _reached(
    case: CaseFile, origin: Entity, types: frozenset[RelationType]
) -> dict[Entity, SeenRelation]:
    return {
        seen.relation.target: seen
        for seen in case.relations_from(origin)
        if seen.relation.type in types
        and seen.relation.target.kind in _REACHED
        and case.is_ours(seen.relation.target)
    }


def _draft_movement(
    origin: Entity, reached: dict[Entity, SeenRelation], strength: float
) -> FindingDraft:
    hosts = sorted(reached, key=entity_sort_key)
    names = join_entities(hosts)
    steps = cite_steps(reached.values())
    return FindingDraft(
        title=f"{name_entity(origin)} reached {count_noun(len(hosts), 'internal host')}",
        severity=Severity.HIGH if strength > _CONNECTED else Severity.MEDIUM,
        strength=strength,
        statements=(state(f"{name_entity(origin)} reached {names}", *steps),),
        entities=(origin, *hosts),
    )
