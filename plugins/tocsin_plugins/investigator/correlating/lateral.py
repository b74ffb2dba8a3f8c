"""Lateral movement: one origin that reached several hosts of ours."""

from __future__ import annotations

from collections.abc import Iterator

from tocsin import Entity, EntityKind, RelationType, Severity
from tocsin_plugins.investigator.case import Case
from tocsin_plugins.investigator.correlating.found import FindingDraft, grade_strength
from tocsin_plugins.investigator.seen import SeenRelation, cite_steps, entity_sort_key
from tocsin_plugins.investigator.wording import counted, listed, named, say

_ORIGINS = frozenset({EntityKind.IP, EntityKind.USER, EntityKind.HOST})
_REACHED = frozenset({EntityKind.IP, EntityKind.HOST})
_HOST_STRENGTHS = {3: 0.6, 5: 1.0}
_BY_LOGON = frozenset({RelationType.LOGGED_ON_TO, RelationType.EXECUTED_ON})
_CONNECTED = 0.5
"""What merely connected counts for half of what logged on or ran something."""


def find_lateral_movement(case: Case) -> Iterator[FindingDraft]:
    """Yield each address, user or host that logged on to, or ran something on, 3 hosts of ours.

    One from outside that merely connected to as many counts for half.
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
    case: Case, origin: Entity, types: frozenset[RelationType]
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
    names = listed([named(host) for host in hosts])
    steps = cite_steps(reached.values())
    return FindingDraft(
        title=f"{named(origin)} reached {counted(len(hosts), 'host')} of ours",
        severity=Severity.HIGH if strength > _CONNECTED else Severity.MEDIUM,
        strength=strength,
        statements=(say(f"{named(origin)} reached {names}", *steps),),
        entities=(origin, *hosts),
    )
