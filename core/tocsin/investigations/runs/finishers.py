"""Effects of a completed run: relations in the graph and planned write-backs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import structlog
from sqlalchemy import Connection, select

from tocsin.events import emit_changes
from tocsin.hookspecs import Provider
from tocsin.identifiers import new_id
from tocsin.investigations.evidence import RelationReport
from tocsin.investigations.runs.completion import FinishedRun, Finisher
from tocsin.investigations.sessions import find_session, session_url
from tocsin.investigations.write_backs import (
    find_write_back_incidents,
    plan_write_backs,
    select_write_back_providers,
)
from tocsin.knowledge.graph import ObservedRelation, record_relations
from tocsin.model import (
    ChangeType,
    Entity,
    Event,
    Json,
    Marking,
    Node,
    NodeKind,
    RelationType,
    Report,
    find_marking,
)
from tocsin.reports import to_json, to_short_text, to_text
from tocsin.store.tables import incidents

MAX_RELATIONS = 5_000
"""Maximum number of relations stored for a run: its findings first, then reported relations."""
_FINISHED = (
    *("status", "created_by", "title", "risk_score", "entity_count", "finding_count", "error"),
    "url",
)
_log = structlog.get_logger()


def build_relation_finisher(markings: Mapping[str, Marking]) -> Finisher:
    """Return the finisher that stores the relations of a completed run.

    Each relation has the marking of its source, and names the step or finding it is known from.
    """

    def relate(connection: Connection, ended: FinishedRun) -> None:
        if ended.result.report is None:
            return
        kept: defaultdict[str, list[ObservedRelation]] = defaultdict(list)
        different: set[tuple[Node, RelationType, Node]] = set()
        left_out = 0
        for known_from, seen in _observed_relations(ended, ended.result.report, markings):
            relation = (seen.source, seen.type, seen.target)
            if relation in different or len(different) < MAX_RELATIONS:
                different.add(relation)
                kept[known_from].append(seen)
            else:
                left_out += 1
        if left_out:
            _log.warning(
                "relations of a run not added to the graph",
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
            for provider, named in ended.result.named.items()
            if entity in named
        )
        found = Node.of(entity)
        relation = ObservedRelation(session, RelationType.FOUND, found, ended.at, marking)
        yield known_from, relation
    for step, reports in ended.result.relations.items():
        for reported in reports:
            yield f"{source}#{step}", _observed_relation(reported, markings)


def _found_entities(source: str, report: Report) -> Iterator[tuple[str, Entity]]:
    """Yield each entity once, with the first finding that names it, or else with the session."""
    left = dict.fromkeys(assessment.entity for assessment in report.entities)
    for finding in report.findings:
        for entity in finding.entities:
            if entity in left:
                del left[entity]
                yield f"{source}#{finding.id}", entity
    for entity in left:
        yield source, entity


def _observed_relation(
    reported: RelationReport, markings: Mapping[str, Marking]
) -> ObservedRelation:
    relation, marking = reported.relation, reported.marking(markings)
    source, target = Node.of(relation.source), Node.of(relation.target)
    return ObservedRelation(source, relation.type, target, reported.at, marking)


def build_change_finisher(public_url: str) -> Finisher:
    """Return the finisher that emits the end of a run to those that follow investigations."""

    def emit(connection: Connection, ended: FinishedRun) -> None:
        def build() -> Iterator[Event]:
            session = find_session(connection, ended.session_id, public_url=public_url)
            assert session is not None  # noqa: S101 - it was completed in this transaction
            yield _build_finished_event(ended, session)

        emit_changes(connection, ChangeType.INVESTIGATION_FINISHED, build)

    return emit


def _build_finished_event(ended: FinishedRun, session: Mapping[str, Any]) -> Event:
    report = ended.result.report
    about = () if report is None else report.about
    known: dict[str, Json] = {name: session[name] for name in _FINISHED}
    # for the templates of completed investigations, which name a schedule
    started_by = ended.schedule_id or session["created_by"]
    return Event(
        id=new_id("evt"),
        event_type=ChangeType.INVESTIGATION_FINISHED,
        timestamp=ended.at,
        data={
            "session_id": ended.session_id,
            "run": ended.run,
            "schedule_id": ended.schedule_id,
            "schedule_name": started_by,
            **known,
        },
        subject=f"session:{ended.session_id}",
        related=tuple(f"incident:{number}" for number in about),
        context={"session": dict(session)} | ({"report": to_json(report)} if report else {}),
    )


def build_write_back_finisher(providers: Mapping[str, Provider], public_url: str) -> Finisher:
    """Return the finisher that plans a comment for each incident that the query names by number.

    Only incidents that were examined, and only at providers with write-back. Incidents that an
    investigation found by itself get no comment: there may be many, and nobody asked about them.
    No SIEM receives what others know: if anything came from another provider, its comment holds
    only the verdict.
    """

    def plan(connection: Connection, ended: FinishedRun) -> None:
        wanted, report = select_write_back_providers(providers), ended.result.report
        if report is None or not wanted:
            return
        about = [number for number in report.about if number in report.incidents]
        involved = ended.result.named.keys() | _find_providers(connection, report.incidents)
        url = session_url(public_url, ended.session_id)
        for number, provider, external_id in find_write_back_incidents(connection, about, wanted):
            plan_write_backs(
                connection,
                session_id=ended.session_id,
                run=ended.run,
                text=to_short_text(report, url) if involved - {provider} else to_text(report),
                incidents=[(number, provider, external_id)],
                now=ended.at,
            )

    return plan


def _find_providers(connection: Connection, numbers: Sequence[int]) -> set[str]:
    query = select(incidents.c.provider).where(incidents.c.number.in_(numbers)).distinct()
    return set(connection.execute(query).scalars())
