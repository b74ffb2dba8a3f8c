"""Removal of old search documents, edges, coverage and quarantined records."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Select, delete, exists, select

from tocsin.knowledge import lock_relations
from tocsin.retention.incidents import remove_relations
from tocsin.store import Archive, RemovalBatch
from tocsin.store.tables import backfills, coverage, documents, incidents, quarantine, relations

BATCH = 500


def remove_documents(
    connection: Connection, after: int | None, before: datetime, _archive: Archive | None
) -> RemovalBatch:
    """Remove old documents from the search index."""
    query = select(documents.c.id).where(documents.c.id > (after or 0), documents.c.at < before)
    ids = _load_ids(connection, query.order_by(documents.c.id))
    connection.execute(delete(documents).where(documents.c.id.in_(ids)))
    return _build_batch(ids)


def remove_edges(
    connection: Connection, after: int | None, before: datetime, _archive: Archive | None
) -> RemovalBatch:
    """Remove edges that were last seen long ago; those that incidents imply go with them."""
    lock_relations(connection)
    r = relations.c
    ids = _load_ids(
        connection, select(r.id).where(r.id > (after or 0), r.last_seen < before).order_by(r.id)
    )
    remove_relations(connection, ids)
    return _build_batch(ids)


def remove_coverage(
    connection: Connection, after: int | None, before: datetime, _archive: Archive | None
) -> RemovalBatch:
    """Remove old intervals, backfills and quarantined records.

    The latest interval of each source is kept, since gaps are measured from it, and those that
    stored incidents refer to.
    """
    c, later = coverage.c, coverage.alias("later")
    is_used = exists().where(incidents.c.coverage_id == c.id)
    has_later = exists().where(
        later.c.provider == c.provider,
        later.c.stream == c.stream,
        later.c.source == c.source,
        later.c.id > c.id,
        later.c.finished_at < before,
    )
    query = select(c.id).where(c.id > (after or 0), c.finished_at < before, has_later, ~is_used)
    ids = _load_ids(connection, query.order_by(c.id))
    connection.execute(delete(coverage).where(c.id.in_(ids)))
    old = select(quarantine.c.id).where(quarantine.c.created_at < before)
    rejected = _load_ids(connection, old.order_by(quarantine.c.id))
    connection.execute(delete(quarantine).where(quarantine.c.id.in_(rejected)))
    connection.execute(delete(backfills).where(backfills.c.finished_at < before))
    if len(rejected) == BATCH:
        return RemovalBatch(len(ids) + len(rejected), ids[-1] if ids else after or 0)
    return RemovalBatch(len(ids) + len(rejected), ids[-1] if len(ids) == BATCH else None)


def _load_ids(connection: Connection, query: Select[Any]) -> Sequence[int]:
    return connection.scalars(query.limit(BATCH)).all()


def _build_batch(ids: Sequence[int]) -> RemovalBatch:
    return RemovalBatch(len(ids), ids[-1] if len(ids) == BATCH else None)
