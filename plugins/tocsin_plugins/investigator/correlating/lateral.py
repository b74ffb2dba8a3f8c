"""Lateral movement: one origin that reached several hosts of ours."""

from __future__ import annotations

from collections.abc import Iterator

from tocsin import Entity, EntityKind, RelationType, Severity
from tocsin_plugins.investigator.case import Case
from tocsin_plugins.investigator.correlating.found import Found, graded
from tocsin_plugins.investigator.seen import SeenRelation, of_steps, order
from tocsin_plugins.investigator.wording import counted, listed, named, say

_ORIGINS = frozenset({EntityKind.IP, EntityKind.USER, EntityKind.HOST})
_REACHED = frozenset({EntityKind.IP, EntityKind.HOST})
_STRENGTHS = {3: 0.6, 5: 1.0}
_BY_LOGON = frozenset({RelationType.LOGGED_ON_TO, RelationType.EXECUTED_ON})
_CONNECTED = 0.5
"""What merely connected counts for half of what logged on or ran something."""


def lateral_movement(case: Case) -> Iterator[Found]:
    """Yield each address, user or host that logged on to, or ran something on, 3 hosts of ours.

    One from outside that merely connected to as many counts for half.
    """
    for origin in case.entities:
        if origin.kind not in _ORIGINS or case.sighting_of(origin).well_known:
            continue
        reached = _reached(case, origin, _BY_LOGON)
        strength = graded(len(reached), _STRENGTHS)
        if not strength and case.is_outside(origin):
            reached = _reached(case, origin, frozenset({RelationType.CONNECTED_TO}))
            strength = graded(len(reached), _STRENGTHS) * _CONNECTED
        if strength:
            yield _found(origin, reached, strength)


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


def _found(origin: Entity, reached: dict[Entity, SeenRelation], strength: float) -> Found:
    hosts = sorted(reached, key=order)
    names = listed([named(host) for host in hosts])
    steps = of_steps(reached.values())
    return Found(
        title=f"{named(origin)} reached {counted(len(hosts), 'host')} of ours",
        severity=Severity.HIGH if strength > _CONNECTED else Severity.MEDIUM,
        strength=strength,
        statements=(say(f"{named(origin)} reached {names}", *steps),),
        entities=(origin, *hosts),
    )
