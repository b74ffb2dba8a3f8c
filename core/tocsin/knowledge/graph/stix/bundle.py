"""STIX bundle of a part of the graph: nodes, relationships and markings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sqlalchemy import Connection, RowMapping, bindparam, select

from tocsin.knowledge.graph.stix.entities import entity_object
from tocsin.knowledge.graph.stix.objects import (
    StixIdentifiers,
    StixObject,
    domain_object,
    marking_definition,
    marking_id,
    timestamp,
)
from tocsin.knowledge.history import load_incidents
from tocsin.knowledge.markings import find_markings
from tocsin.knowledge.sql_lists import parse_incident_number
from tocsin.model import (
    Edge,
    Entity,
    EntityKind,
    IncidentRecord,
    Marking,
    Neighborhood,
    Node,
    NodeKind,
    RelationType,
    Tlp,
)
from tocsin.store.tables import sessions

# Relationship types of STIX (section 3.7.1 and appendix B); others keep their own names
_RELATIONSHIPS = {
    RelationType.INVOLVES: "related-to",
    RelationType.MERGED_INTO: "duplicate-of",
    RelationType.CONNECTED_TO: "communicates-with",
}
_SESSIONS = select(
    sessions.c.id, sessions.c.title, sessions.c.query, sessions.c.created_at, sessions.c.updated_at
).where(sessions.c.id.in_(bindparam("ids", expanding=True)))


def export_stix(
    connection: Connection,
    part: Neighborhood,
    markings: Mapping[str, Marking],
    *,
    public_url: str,
) -> dict[str, Any]:
    """Return the nodes and edges of `part` as a STIX 2.1 bundle.

    Identifiers are the same in every export. An entity has the strictest marking of all its
    sources, in the bundle or not.
    """
    numbers = [number for node in part.nodes if (number := parse_incident_number(node)) is not None]
    incidents = load_incidents(connection, numbers, markings)
    ids = [node.value for node in part.nodes if node.kind == NodeKind.SESSION]
    investigations = connection.execute(_SESSIONS, {"ids": ids}).mappings().all()
    entities = [entity for node in part.nodes if (entity := _entity(node))]
    known = find_markings(connection, entities, markings)
    tlps = {Node.of(entity): marking.tlp for entity, marking in known.items()}
    return _BundleBuilder(part, incidents, investigations, tlps, StixIdentifiers(public_url)).make()


def _entity(node: Node) -> Entity | None:
    return Entity(EntityKind(node.kind), node.value) if node.kind in set(EntityKind) else None


class _BundleBuilder:
    def __init__(
        self,
        part: Neighborhood,
        incidents: Iterable[IncidentRecord],
        investigations: Iterable[RowMapping],
        tlps: Mapping[Node, Tlp],
        names: StixIdentifiers,
    ) -> None:
        self._part = part
        self._names = names
        self._incidents = {
            Node(NodeKind.INCIDENT, str(incident.number)): incident for incident in incidents
        }
        self._sessions = {
            Node(NodeKind.SESSION, investigation["id"]): investigation
            for investigation in investigations
        }
        self._tlps = {**self._mark(), **tlps}
        self._objects: dict[Node, StixObject] = {}

    def make(self) -> dict[str, Any]:
        """Return the bundle."""
        for node in self._part.nodes:
            if node.kind != NodeKind.SESSION and (made := self._object(node)) is not None:
                self._objects[node] = self._marked(made, node)
        relationships = list(self._relationships())
        groupings = list(self._groupings())
        definitions = map(marking_definition, sorted(set(self._tlps.values()), key=_rank))
        # two kinds of entity may be the same object, such as an email address and its mailbox
        unique = {made["id"]: made for made in self._objects.values()}
        objects = [*definitions, *unique.values(), *relationships, *groupings]
        parts = sorted(f"{made['id']} {made.get('modified', '')}" for made in objects)
        return {"type": "bundle", "id": self._names.of("bundle", *parts), "objects": objects}

    def _mark(self) -> dict[Node, Tlp]:
        """Return the markings of nodes from the incidents in the bundle."""
        tlps = {node: incident.marking.tlp for node, incident in self._incidents.items()}
        marked = dict(tlps)
        for edge in self._part.edges:
            for node, other in ((edge.source, edge.target), (edge.target, edge.source)):
                if other in tlps and node not in tlps:
                    marked[node] = max(marked.get(node, tlps[other]), tlps[other], key=_rank)
        return marked

    def _marked(self, made: StixObject, *nodes: Node) -> StixObject:
        tlps = [self._tlps[node] for node in nodes if node in self._tlps]
        if tlps:
            made["object_marking_refs"] = [marking_id(max(tlps, key=_rank))]
        return made

    def _object(self, node: Node) -> StixObject | None:
        incident = self._incidents.get(node)
        return entity_object(node, self._names) if incident is None else self._incident(incident)

    def _incident(self, incident: IncidentRecord) -> StixObject:
        name = self._names.of("incident", incident.provider, incident.external_id)
        reference = {"source_name": incident.provider, "external_id": incident.external_id}
        if incident.source_url:
            reference["url"] = incident.source_url
        return {
            **domain_object("incident", name, incident.occurred_at, incident.updated_at),
            "name": incident.title,
            **({"description": incident.description} if incident.description else {}),
            "labels": [
                *(f"severity:{incident.severity}", f"status:{incident.status}"),
                *(f"tactic:{tactic}" for tactic in incident.tactics),
            ],
            "external_references": [reference],
        }

    def _relationships(self) -> Iterator[StixObject]:
        for edge in self._part.edges:
            source, target = self._objects.get(edge.source), self._objects.get(edge.target)
            if source is not None and target is not None and source["id"] != target["id"]:
                made = self._relationship(edge, source["id"], target["id"])
                yield self._marked(made, edge.source, edge.target)

    def _relationship(self, edge: Edge, source: str, target: str) -> StixObject:
        type_ = _RELATIONSHIPS.get(edge.type, edge.type.value)
        name = self._names.of("relationship", source, edge.type, target)
        times = {"start_time": timestamp(edge.first_seen)}
        if timestamp(edge.last_seen) > times["start_time"]:  # it must be later, section 5.1.1
            times["stop_time"] = timestamp(edge.last_seen)
        return {
            **domain_object("relationship", name, edge.first_seen, edge.last_seen),
            "relationship_type": type_,
            "description": f"{edge.type.value}, reported {edge.count} times",
            "source_ref": source,
            "target_ref": target,
            **times,
            "external_references": [
                {"source_name": "tocsin", "external_id": source} for source in edge.known_from
            ],
        }

    def _groupings(self) -> Iterator[StixObject]:
        for node, row in self._sessions.items():
            others = [edge.target for edge in self._part.edges if edge.source == node]
            refs = {self._objects[other]["id"]: None for other in others if other in self._objects}
            if refs:  # a grouping must have some, section 4.5.1
                name = self._names.of("grouping", node.value)
                made = {
                    **domain_object("grouping", name, row["created_at"], row["updated_at"]),
                    "name": row["title"] or row["query"],
                    "context": "suspicious-activity",
                    "object_refs": list(refs),
                    "external_references": [{"source_name": "tocsin", "external_id": node.value}],
                }
                yield self._marked(made, *others)


def _rank(tlp: Tlp) -> int:
    return tlp.rank
