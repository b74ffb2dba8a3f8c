"""Removal of old investigations and runs of schedules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import date, datetime
from typing import Any

import orjson
from sqlalchemy import Connection, RowMapping, delete, exists, select

from tocsin.clock import isoformat, isoformat_or_none
from tocsin.investigations import load_steps
from tocsin.knowledge import lock_relations
from tocsin.model import NodeKind, SessionStatus
from tocsin.retention.incidents import remove_relations, remove_remote_objects
from tocsin.store import Archive, RemovalBatch, lock_exclusively
from tocsin.store.tables import (
    documents,
    relations,
    schedule_runs,
    session_messages,
    session_steps,
    sessions,
    write_backs,
)

BATCH = 10  # a session has up to 2,000 steps
_ENDED = (SessionStatus.COMPLETED, SessionStatus.FAILED, SessionStatus.CANCELLED)
_ARCHIVED = (
    *("id", "status", "query", "persona", "provider", "schedule_id", "title", "verdict"),
    *("confidence", "risk_score", "error", "report", "created_by"),
)
_MOMENTS = ("created_at", "updated_at", "completed_at")


def remove_sessions(
    connection: Connection, _after: object, before: datetime, archive: Archive | None
) -> RemovalBatch:
    """Remove the sessions that ended longest ago, with their steps, messages and edges.

    Those with a comment that is still to be written are kept. Raises OSError if archiving fails.
    """
    lock_exclusively(connection, "the archive")
    pending = exists().where(
        write_backs.c.session_id == sessions.c.id, write_backs.c.state == "pending"
    )
    query = (
        select(sessions)
        .where(sessions.c.status.in_(_ENDED), sessions.c.updated_at < before, ~pending)
        .order_by(sessions.c.id)
        .limit(BATCH)
        .with_for_update()
    )
    old = connection.execute(query).mappings().all()
    ids = [row["id"] for row in old]
    if archive is not None and old:
        archive.add(list(_archive_lines(connection, old)), "investigations")
    _remove_runs(connection, before)
    if not ids:
        return RemovalBatch(0, None)
    lock_relations(connection)
    theirs = select(relations.c.id).where(
        relations.c.source_kind == NodeKind.SESSION, relations.c.source_value.in_(ids)
    )
    remove_relations(connection, connection.scalars(theirs).all())
    remove_remote_objects(connection, [f"session:{session_id}" for session_id in ids])
    is_indexed = (documents.c.kind == "session", documents.c.record.in_(ids))
    connection.execute(delete(documents).where(*is_indexed))
    for table in (session_steps, session_messages, write_backs):
        connection.execute(delete(table).where(table.c.session_id.in_(ids)))
    connection.execute(delete(sessions).where(sessions.c.id.in_(ids)))
    return RemovalBatch(len(old), before if len(old) == BATCH else None)


def _remove_runs(connection: Connection, before: datetime) -> None:
    r = schedule_runs.c
    old = select(r.id).where(r.ended_at < before, r.state.not_in(("running", "waiting")))
    ids = connection.scalars(old.order_by(r.id).limit(BATCH * 10)).all()
    connection.execute(delete(schedule_runs).where(r.id.in_(ids)))


def _archive_lines(
    connection: Connection, old: Sequence[RowMapping]
) -> Iterator[tuple[date, dict[str, Any]]]:
    for row in old:
        line = {name: row[name] for name in _ARCHIVED}
        line |= {name: isoformat_or_none(row[name]) for name in _MOMENTS}
        m = session_messages.c
        asked = select(m.number, m.role, m.text, m.created_by).where(m.session_id == row["id"])
        messages = connection.execute(asked.order_by(m.number)).mappings()
        line["messages"] = [{str(name): value for name, value in said.items()} for said in messages]
        line["steps"] = [
            {
                **asdict(step),
                "question": step.question and orjson.Fragment(step.question),
                "answer": step.answer and orjson.Fragment(step.answer),
                "started_at": isoformat(step.started_at),
            }
            for step in load_steps(connection, row["id"])
        ]
        yield row["created_at"].date(), line
