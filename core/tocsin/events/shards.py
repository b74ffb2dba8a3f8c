"""Shards of subjects: what concerns one subject is routed in order, shards beside each other."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    bindparam,
    func,
    literal_column,
    or_,
    text,
)

from tocsin.store import is_in
from tocsin.store.tables import events

SHARDS = 16
# Everyone shares the lock of all shards, which excludes those who lock it alone
_LOCK = text(
    f"""
    SELECT pg_advisory_xact_lock_shared(hashtextextended('routing', 0))::text
    UNION ALL SELECT pg_advisory_xact_lock(hashtextextended('routing ' || shard, 0))::text FROM (
        SELECT DISTINCT hashtextextended(subject, 0) & {SHARDS - 1} AS shard
        FROM unnest(CAST(:subjects AS text[])) AS subject ORDER BY shard
    ) AS shards
    """  # noqa: S608 - a constant
)


@dataclass(frozen=True, slots=True)
class EventShare:
    """The events that one of several nodes routes."""

    shards: tuple[int, ...]
    until: str
    """Events of other shards are included if their IDs are before this one; empty for none."""


def lock_subjects(connection: Connection, subjects: Collection[str]) -> None:
    """Lock the shards of these subjects until this transaction ends, in the same order everywhere.

    SQLite has a single writing transaction anyway.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(_LOCK, {"subjects": sorted(subjects)})


def build_share() -> ColumnElement[bool]:
    """Return the condition of the events of a share, on PostgreSQL."""
    hashed = func.hashtextextended(events.c.subject, literal_column("0"), type_=Integer())
    shard = hashed.op("&")(literal_column(str(SHARDS - 1)))
    return or_(is_in(shard, "shards"), events.c.id < bindparam("until"))
