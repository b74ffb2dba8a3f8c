"""Heartbeats of nodes, by which other nodes notice that a node is frozen or stuck."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, delete, select

from tocsin.loops import SILENCE
from tocsin.store.files import is_locked
from tocsin.store.notifications import find_absent_nodes
from tocsin.store.statements import build_insert
from tocsin.store.tables import EPOCH, nodes


@dataclass(frozen=True, slots=True)
class TroubledNode:
    """A node that is running but not working."""

    number: int
    name: str
    beat_at: datetime
    stalled: Sequence[str]
    """Its loops that are stuck; empty if the whole node is silent."""


def record_heartbeat(
    connection: Connection,
    number: int,
    name: str,
    stalled: Sequence[str],
    now: datetime,
    *,
    roles: Sequence[str] = (),
    encryption_keys: Mapping[str, object] | None = None,
    degraded: Mapping[str, str] | None = None,
) -> None:
    """Store that a node works at `now`, but for its stalled loops; forget nodes that are gone."""
    old = select(nodes.c.number).where(nodes.c.number != number, nodes.c.beat_at < now - SILENCE)
    gone = find_absent_nodes(connection, connection.scalars(old).all())
    if gone:
        connection.execute(delete(nodes).where(nodes.c.number.in_(gone)))
    values = {
        "name": name,
        "beat_at": now,
        "stalled": list(stalled),
        "roles": list(roles),
        "encryption_keys": encryption_keys,
        "degraded": dict(degraded or {}),
    }
    first = {"number": number, "clock_offset_ms": 0, "seen_at": EPOCH, **values}
    statement = build_insert(connection, nodes).values(first)
    connection.execute(statement.on_conflict_do_update(index_elements=["number"], set_=values))


def find_troubled_nodes(connection: Connection, now: datetime) -> Iterator[TroubledNode]:
    """Yield the running nodes that are silent or have stalled loops, by their names."""
    query = select(nodes).where(nodes.c.beat_at.is_not(None)).order_by(nodes.c.name, nodes.c.number)
    for row in connection.execute(query).all():
        is_silent = now - row.beat_at > SILENCE
        if (is_silent or row.stalled) and _is_running(connection, row.number):
            yield TroubledNode(row.number, row.name, row.beat_at, () if is_silent else row.stalled)


def find_node_roles(connection: Connection, now: datetime) -> Mapping[str, Collection[str]]:
    """Return the roles of the nodes that run and are not silent, by their names."""
    query = select(nodes).where(nodes.c.beat_at > now - SILENCE).order_by(nodes.c.name)
    return {
        row.name: row.roles or ()
        for row in connection.execute(query).all()
        if _is_running(connection, row.number)
    }


def find_nodes_with_role(connection: Connection, role: str, now: datetime) -> list[int]:
    """Return the numbers of the nodes with a role that run and are not silent."""
    query = select(nodes.c.number, nodes.c.roles).where(nodes.c.beat_at > now - SILENCE)
    return [
        row.number
        for row in connection.execute(query).all()
        if role in (row.roles or ()) and _is_running(connection, row.number)
    ]


def find_node_keys(
    connection: Connection, now: datetime
) -> Sequence[tuple[str, Mapping[str, Any]]]:
    """Return the encryption keys of the nodes that run and are not silent, with their names."""
    query = select(nodes).where(nodes.c.beat_at > now - SILENCE).order_by(nodes.c.name)
    return [
        (row.name, row.encryption_keys or {})
        for row in connection.execute(query).all()
        if _is_running(connection, row.number)
    ]


def find_degraded_plugins(connection: Connection, now: datetime) -> Mapping[str, str]:
    """Return why the plugin objects of the running nodes are degraded, by their paths."""
    query = select(nodes).where(nodes.c.beat_at > now - SILENCE).order_by(nodes.c.name)
    degraded: dict[str, str] = {}
    for row in connection.execute(query).all():
        if row.degraded and _is_running(connection, row.number):
            degraded |= row.degraded
    return degraded


def _is_running(connection: Connection, number: int) -> bool:
    """Return whether the process of a node still holds its lock."""
    if connection.dialect.name == "postgresql":
        return not find_absent_nodes(connection, [number])
    return is_locked(Path(str(connection.engine.url.database)))
