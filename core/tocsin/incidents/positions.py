"""Where each stream of each provider was read up to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, insert, select, update

from tocsin.errors import TocsinError
from tocsin.store.tables import stream_positions


class Superseded(TocsinError):  # noqa: N818 - a state, not a mistake
    """Someone else has read on from the same position; what this reader holds is stale."""


@dataclass(frozen=True, slots=True)
class StreamKey:
    """One stream of one provider."""

    provider: str
    stream: str

    def __str__(self) -> str:
        return f"{self.provider}: {self.stream}"


@dataclass(frozen=True, slots=True)
class Position:
    """A provider's own position, None before the first page, and how often it has moved."""

    value: Mapping[str, Any] | None
    revision: int


def load_position(connection: Connection, key: StreamKey) -> Position:
    """Return where to go on reading."""
    table = stream_positions.c
    row = connection.execute(
        select(table.position, table.revision).where(
            table.provider == key.provider, table.stream == key.stream
        )
    ).first()
    return Position(None, 0) if row is None else Position(row.position, row.revision)


def advance(
    connection: Connection,
    key: StreamKey,
    revision: int,
    position: Mapping[str, Any],
    now: datetime,
) -> None:
    """Move on from `revision`; raises Superseded where that is no longer the current one."""
    table = stream_positions
    moved = {"position": dict(position), "revision": revision + 1, "updated_at": now}
    if revision == 0:
        if load_position(connection, key).revision:
            raise Superseded(f"{key} was first read by another node")
        first = {"provider": key.provider, "stream": key.stream, **moved}
        connection.execute(insert(table).values(first))
        return
    result = connection.execute(
        update(table)
        .where(table.c.provider == key.provider, table.c.stream == key.stream)
        .where(table.c.revision == revision)
        .values(**moved)
    )
    if result.rowcount != 1:
        raise Superseded(f"{key} was read on by another node")
