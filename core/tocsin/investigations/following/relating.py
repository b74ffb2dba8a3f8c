"""What a run adds to the graph: what it examined and found, and what its answers told."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

import structlog
from sqlalchemy import Connection

from tocsin.investigations.relations import RelationReport
from tocsin.investigations.running.ending import FinishedRun, Finisher
from tocsin.knowledge.graph import ObservedRelation, record_relations
from tocsin.model import Entity, Marking, Node, NodeKind, RelationType, Report, find_marking

MAX_RELATIONS = 5_000
"""So many relations of a run go into the graph: what it found, and then what was told first."""
_log = structlog.get_logger()


def build_relation_finisher(markings: Mapping[str, Marking]) -> Finisher:
    """Return what records the relations of a run that completed, marked as who tells them is.

    Each says the step or finding that it is known from.
    """

    def relate(connection: Connection, ended: FinishedRun) -> None:
        if ended.report is None:
            return
        kept: defaultdict[str, list[ObservedRelation]] = defaultdict(list)
        different: set[tuple[Node, RelationType, Node]] = set()
        left_out = 0
        for known_from, seen in _observed_relations(ended, ended.report, markings):
            relation = (seen.source, seen.type, seen.target)
            if relation in different or len(different) < MAX_RELATIONS:
                different.add(relation)
                kept[known_from].append(seen)
            else:
                left_out += 1
        if left_out:
            _log.warning(
                "a run told of more relations than the graph takes",
                session=ended.session_id,
                left_out=left_out,
            )
        record_relations(connection, kept)

    return relate


def _observed_relations(
    ended: FinishedRun, report: Report, markings: Mapping[str, Marking]
) -> Iterator[tuple[str, ObservedRelation]]:
    session, source = Node(NodeKind.SESSION, ended.session_id), f"session:{ended.session_id}"
    for number in report.incidents:
        incident = Node(NodeKind.INCIDENT, str(number))
        yield source, ObservedRelation(session, RelationType.EXAMINED, incident, ended.at)
    for known_from, entity in _found_entities(source, report):
        marking = Marking.strictest(
            find_marking(provider, markings)
            for provider, named in ended.named.items()
            if entity in named
        )
        yield (
            known_from,
            ObservedRelation(session, RelationType.FOUND, Node.of(entity), ended.at, marking),
        )
    for step, several in ended.told.items():
        for told in several:
            yield f"{source}#{step}", _observed_relation(told, markings)


def _found_entities(source: str, report: Report) -> Iterator[tuple[str, Entity]]:
    """Yield every entity once: with the first finding that names it, else with the session."""
    left = dict.fromkeys(it.entity for it in report.entities)
    for finding in report.findings:
        for entity in finding.entities:
            if entity in left:
                del left[entity]
                yield f"{source}#{finding.id}", entity
    for entity in left:
        yield source, entity


def _observed_relation(told: RelationReport, markings: Mapping[str, Marking]) -> ObservedRelation:
    relation = told.relation
    source, target = Node.of(relation.source), Node.of(relation.target)
    return ObservedRelation(source, relation.type, target, told.at, told.marking(markings))
