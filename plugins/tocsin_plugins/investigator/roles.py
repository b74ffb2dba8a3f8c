"""Roles of entities in a case: attackers, victims, contacted and infected machines.

Roles come from the source and the target of alerts and flows alone. Whether an address is public
says nothing: a public address may be an attacked server of the organization.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from tocsin import Entity, EntityKind, IncidentRecord, RelationType
from tocsin_plugins.investigator.case import ORIGINS, CaseFile
from tocsin_plugins.investigator.evidence import entity_sort_key
from tocsin_plugins.investigator.sides import Sides, separate_sides
from tocsin_plugins.investigator.signs import AttackSign, find_attacks

INBOUND = frozenset(
    {AttackSign.SCAN, AttackSign.BRUTE_FORCE, AttackSign.FAILED_LOGON, AttackSign.EXPLOIT}
)
"""Signs whose source is the attacker."""
OUTBOUND = frozenset({AttackSign.CALLBACK, AttackSign.MALWARE})
"""Signs whose source is the infected machine, unless there is an inbound sign as well, or the
traffic comes from outside: a command-and-control server that answers or connects.
"""
_MACHINES = frozenset({EntityKind.HOST, EntityKind.IP})
_NAMES = frozenset({EntityKind.DOMAIN, EntityKind.URL})


def find_sides(case: CaseFile, record: IncidentRecord) -> Sides:
    """Return the sides of an incident, by its alerts, or else by its flows and the graph.

    An entity on both sides is on neither.
    """
    if record.sources or record.targets:
        return separate_sides(record.sources, record.targets)
    own = [seen.sides for seen in case.find_own_events(record)]
    if any(sides.is_known for sides in own):
        sources = (entity for sides in own for entity in sides.sources)
        return separate_sides(sources, (entity for sides in own for entity in sides.targets))
    involved = set(record.entities)
    flows = [
        seen.relation
        for entity in record.entities
        for seen in case.relations_from(entity)
        if seen.relation.type is RelationType.CONNECTED_TO and seen.relation.target in involved
    ]
    return separate_sides((flow.source for flow in flows), (flow.target for flow in flows))


def find_origins(case: CaseFile, record: IncidentRecord) -> list[Entity]:
    """Return the external addresses that an incident names as source of an attack.

    The source of malware or of a callback is the infected machine, and not an origin, unless it is
    external and the target is internal.
    """
    sides = find_sides(case, record)
    if _is_outbound(case, find_attacks(record), sides):
        return []
    sources = sides.sources
    return [
        entity
        for entity in list_involved(case, record)
        if entity in sources and entity.kind in ORIGINS and case.is_outside(entity)
    ]


def _is_outbound(case: CaseFile, signs: AbstractSet[AttackSign], sides: Sides) -> bool:
    """Return whether an activity is that of an infected machine, as far as is known."""
    return bool(signs & OUTBOUND) and not signs & INBOUND and not _is_from_outside(case, sides)


def _is_from_outside(case: CaseFile, sides: Sides) -> bool:
    """Return whether an activity comes from external addresses only, to internal machines."""
    sources = [entity for entity in sides.sources if entity.kind in _MACHINES]
    targets = [entity for entity in sides.targets if entity.kind is EntityKind.IP]
    return (
        bool(sources and targets)
        and all(case.is_outside(entity) for entity in sources)
        and all(case.is_ours(entity) for entity in targets)
    )


def find_infected(case: CaseFile, record: IncidentRecord) -> list[Entity]:
    """Return the internal machines where the malware of an incident is.

    They are its sources, or its only host if it names no side.
    """
    signs = find_attacks(record)
    if not signs & OUTBOUND:
        return []
    involved = [entity for entity in list_involved(case, record) if case.is_ours(entity)]
    sides = find_sides(case, record)
    if sides.is_known:
        return [one for one in involved if one in sides.sources and one.kind in _MACHINES]
    hosts = [entity for entity in involved if entity.kind is EntityKind.HOST]
    return hosts if len(hosts) == 1 else []


def find_subjects(case: CaseFile) -> frozenset[Entity]:
    """Return the subjects of the query: named entities, and the origins of the incidents in focus.

    An incident without a known origin contributes all its entities.
    """
    found = set(case.scope.entities)
    for record in case.in_focus:
        involved = list_involved(case, record)
        if origins := find_origins(case, record):
            targets = find_sides(case, record).targets
            foreign = (entity for entity in involved if case.is_foreign(entity))
            found |= {*origins, *(entity for entity in foreign if entity not in targets)}
        else:
            found |= {entity for entity in involved if case.connects(entity)}
    return frozenset(found)


def list_involved(case: CaseFile, record: IncidentRecord) -> list[Entity]:
    """Return the entities of an incident that the query does not exclude, in order."""
    kept = (entity for entity in record.entities if not case.scope.ignores(entity))
    return sorted(set(kept), key=entity_sort_key)


@dataclass(frozen=True, slots=True)
class CaseRoles:
    """The entities of a case by role. An entity may have several, or none."""

    attackers: frozenset[Entity]
    """Sources of scans, exploits and failed logons."""
    victims: frozenset[Entity]
    """Targets of these, with the names that the attacker asked for."""
    contacted: frozenset[Entity]
    """Targets of infected or internal machines, such as command-and-control servers."""
    infected: frozenset[Entity]
    """Sources of malware and callbacks."""
    entered: frozenset[Entity]
    """Targets of a successful logon by an external attacker."""
    involved: frozenset[Entity]
    """Entities of any incident or event."""


def assign_roles(case: CaseFile) -> CaseRoles:
    """Return the roles in the incidents and events of a case."""
    roles: dict[str, set[Entity]] = {name: set() for name in _ROLES}
    for signs, sides, entities in _list_activities(case):
        roles["involved"] |= entities
        if signs & INBOUND or (signs & OUTBOUND and _is_from_outside(case, sides)):
            roles["attackers"] |= sides.sources
            names = {entity for entity in entities if entity.kind in _NAMES}
            roles["victims"] |= sides.targets | (names - sides.sources if sides.is_known else set())
        elif signs & OUTBOUND:
            roles["infected"] |= sides.sources
            roles["contacted"] |= sides.targets
        elif any(case.is_ours(source) for source in sides.sources):
            roles["contacted"] |= {end for end in sides.targets if not case.is_ours(end)}
        else:
            is_flow = any(end.kind in _MACHINES for end in sides.targets)
            names = {entity for entity in entities if entity.kind in _NAMES and is_flow}
            roles["victims"] |= sides.targets | names
    foreign = {entity for entity in roles["attackers"] if case.is_outside(entity)}
    for signs, sides, _ in _list_activities(case):
        if AttackSign.LOGON in signs and sides.sources & foreign:
            roles["entered"] |= sides.targets
    return CaseRoles(**{name: frozenset(members) for name, members in roles.items()})


_ROLES = tuple(CaseRoles.__dataclass_fields__)


def _list_activities(
    case: CaseFile,
) -> Iterator[tuple[AbstractSet[AttackSign], Sides, AbstractSet[Entity]]]:
    """Yield signs, sides and entities of each incident and event."""
    for record in case.records:
        yield find_attacks(record), find_sides(case, record), frozenset(record.entities)
    for seen in case.events:
        yield seen.signs, seen.sides, frozenset(seen.event.entities)
