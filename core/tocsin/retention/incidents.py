"""Removal of old incidents. What remains says that they were there, and how they were alerted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    String,
    Table,
    cast,
    delete,
    exists,
    insert,
    literal,
    select,
    tuple_,
    update,
)

from tocsin.clock import isoformat
from tocsin.delivery import DEAD, DELIVERED
from tocsin.incidents import digest_identity, lock_incidents
from tocsin.knowledge import INDEXED_CHANGES, lock_relations
from tocsin.model import NodeKind
from tocsin.store import (
    Archive,
    RemovalBatch,
    allot_numbers,
    lock_exclusively,
)
from tocsin.store.tables import (
    deliveries,
    destinations,
    documents,
    entities,
    entity_names,
    entity_providers,
    events,
    incident_alerts,
    incident_changes,
    incident_comments,
    incident_documents,
    incident_entities,
    incident_labels,
    incident_techniques,
    incident_triage,
    incidents,
    relation_sources,
    relations,
    remote_objects,
    removed_incidents,
    rereads,
    siem_closures,
    write_backs,
)

BATCH = 100
_SUBJECT = literal("incident:") + cast(incidents.c.number, String)
_PARTS = (
    *(incident_alerts, incident_entities, incident_techniques),
    *(incident_triage, incident_labels, incident_comments, incident_changes),
)
_MOMENTS = ("occurred_at", "created_at", "updated_at")


def remove_incidents(
    connection: Connection, _after: object, before: datetime, archive: Archive | None
) -> RemovalBatch:
    """Remove the incidents that changed longest ago, with all that belongs to them.

    Those with a pending delivery or comment are kept. Their numbers stay reserved: an incident that
    is read again gets its number back, and is not alerted twice. Raises OSError if archiving fails.
    """
    lock_exclusively(connection, "the archive")
    # Neither the indexer nor a provider works on an incident meanwhile
    indexed = allot_numbers(connection, INDEXED_CHANGES, 0).stop - 1
    lock_incidents(connection)
    old = _find_old(connection, before, indexed)
    numbers = [row["number"] for row in old]
    if not numbers:
        return RemovalBatch(0, None)
    if archive is not None:
        archive.add(list(_archive_lines(connection, old)), "incidents")
    _uncount_entities(connection, numbers)
    _remove_relations(connection, numbers)
    remove_remote_objects(connection, [f"incident:{number}" for number in numbers])
    names = [(row["provider"], row["external_id"]) for row in old]
    is_named = tuple_(rereads.c.provider, rereads.c.external_id).in_(names)
    connection.execute(delete(rereads).where(is_named))
    records = [str(number) for number in numbers]
    is_indexed = (documents.c.kind == "incident", documents.c.record.in_(records))
    connection.execute(delete(documents).where(*is_indexed))
    for table in (*_PARTS, siem_closures, write_backs):
        connection.execute(delete(table).where(table.c.incident_number.in_(numbers)))
    connection.execute(delete(incident_documents).where(incident_documents.c.number.in_(numbers)))
    connection.execute(delete(incidents).where(incidents.c.number.in_(numbers)))
    connection.execute(insert(removed_incidents), [_remember(row) for row in old])
    return RemovalBatch(len(old), before if len(old) == BATCH else None)


def _find_old(connection: Connection, before: datetime, indexed: int) -> Sequence[RowMapping]:
    query = (
        select(incidents)
        .where(incidents.c.updated_at < before, incidents.c.change <= indexed)
        .where(~_has_pending_delivery(), ~_has_pending_comment())
        .order_by(incidents.c.updated_at, incidents.c.change)
        .limit(BATCH)
    )
    return connection.execute(query).mappings().all()


def _has_pending_delivery() -> ColumnElement[bool]:
    return exists().where(
        events.c.subject == _SUBJECT,
        deliveries.c.event_id == events.c.id,
        deliveries.c.state.not_in((DELIVERED, DEAD)),
    )


def _has_pending_comment() -> ColumnElement[bool]:
    return exists().where(
        write_backs.c.incident_number == incidents.c.number, write_backs.c.state == "pending"
    )


def _remember(row: RowMapping) -> dict[str, Any]:
    return {
        "number": row["number"],
        "digest": digest_identity(row["provider"], row["external_id"]),
        "alert_outcome": row["alert_outcome"],
        "created_at": row["created_at"],
        "updated_at": row["updated_at"],
    }


def _archive_lines(
    connection: Connection, old: Sequence[RowMapping]
) -> Iterator[tuple[date, dict[str, Any]]]:
    parts = {table.name: _load_parts(connection, table, old) for table in _PARTS}
    for row in old:
        line: dict[str, Any] = {
            str(name): value for name, value in row.items() if name not in ("change", "coverage_id")
        }
        line |= {name: isoformat(row[name]) for name in _MOMENTS}
        changed_at = row["source_changed_at"]
        line["source_changed_at"] = changed_at and isoformat(changed_at)
        for name, of_incident in parts.items():
            line[name.removeprefix("incident_")] = of_incident[row["number"]]
        yield row["created_at"].date(), line


def _load_parts(
    connection: Connection, table: Table, old: Sequence[RowMapping]
) -> Mapping[int, list[dict[str, Any]]]:
    number = table.c.incident_number
    query = select(table).where(number.in_([row["number"] for row in old]))
    found: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in connection.execute(query.order_by(*table.primary_key.columns)).mappings():
        part = {
            str(name): isoformat(value) if isinstance(value, datetime) else value
            for name, value in row.items()
            if name != "incident_number"
        }
        found[row["incident_number"]].append(part)
    return found


def _uncount_entities(connection: Connection, numbers: Sequence[int]) -> None:
    """Take incidents out of the counts of their entities; entities without any are forgotten."""
    named = incident_entities.c
    theirs = select(named.kind, named.value).where(named.incident_number.in_(numbers))
    counts: dict[tuple[str, str], int] = defaultdict(int)
    for kind, value in connection.execute(theirs):
        counts[kind, value] += 1
    for (kind, value), count in sorted(counts.items()):
        one = (entities.c.kind == kind, entities.c.value == value)
        left = update(entities).where(*one).values(incident_count=entities.c.incident_count - count)
        if (connection.scalar(left.returning(entities.c.incident_count)) or 0) <= 0:
            for table in (entities, entity_names, entity_providers):
                gone = delete(table).where(table.c.kind == kind, table.c.value == value)
                connection.execute(gone)


def _remove_relations(connection: Connection, numbers: Sequence[int]) -> None:
    """Remove the edges of the incidents."""
    lock_relations(connection)
    values = [str(number) for number in numbers]
    for end in ("source", "target"):
        kind, value = relations.c[f"{end}_kind"], relations.c[f"{end}_value"]
        theirs = select(relations.c.id).where(kind == NodeKind.INCIDENT, value.in_(values))
        remove_relations(connection, connection.scalars(theirs).all())


def remove_remote_objects(connection: Connection, subjects: Sequence[str]) -> None:
    """Forget the receivers' IDs of tickets and other objects of these subjects."""
    r = remote_objects.c
    served = r.destination.in_(select(destinations.c.name))  # so that the primary key is used
    connection.execute(delete(remote_objects).where(served, r.subject.in_(subjects)))


def remove_relations(connection: Connection, ids: Sequence[int]) -> None:
    """Remove edges with their sources."""
    connection.execute(delete(relation_sources).where(relation_sources.c.relation_id.in_(ids)))
    connection.execute(delete(relations).where(relations.c.id.in_(ids)))
