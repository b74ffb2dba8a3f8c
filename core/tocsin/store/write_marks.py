"""Marks of writes, which show whether a replica has received what a caller wrote.

A transaction that writes for a caller also stores a random number. A replica that has the same
number has that transaction. Neither clocks nor positions in the server's log are compared, so it
holds for all nodes, and for a replica that went another way than its primary after a failover.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, func, select, text, update

from tocsin.store.statements import build_insert
from tocsin.store.tables import nodes, write_marks

PLACES = 64
"""Places for marks, which callers share: two seldom wait for each other, and no row is added."""
_PROBE = -1
_BITS = 62
_m = write_marks.c
# Of nodes that serve the API, those of an earlier version and those without a read URL
_WITHOUT_MARKS = "FROM nodes WHERE replica_beat IS NULL AND (roles IS NULL OR roles ? 'api')"
_HAS_UNMARKED = text(f"EXISTS (SELECT {_WITHOUT_MARKS})")
_SELECT_UNMARKED = text(f"SELECT name {_WITHOUT_MARKS} ORDER BY name")


@dataclass(frozen=True, slots=True)
class Freshness:
    """What a replica must have received before it may answer."""

    place: int | None
    """The place of the caller's mark; None for all places."""
    mark: int
    """What the primary has there; 0 if nothing was written yet."""
    is_known: bool
    """Whether every node marks its writes."""


def choose_place(caller: str) -> int:
    """Return the place for the marks of a caller."""
    return int.from_bytes(sha256(caller.encode()).digest()[:2]) % PLACES


def mark_write(connection: Connection, caller: str) -> None:
    """Mark the writes of this transaction as the caller's; call it last, since it takes a lock."""
    _store_mark(connection, choose_place(caller))


def load_freshness(connection: Connection, caller: str | None) -> Freshness:
    """Return what a replica has to show to this caller; to all callers if None."""
    place = None if caller is None else choose_place(caller)
    mark, is_unmarked = connection.execute(select(_select_mark(place), _HAS_UNMARKED)).one()
    return Freshness(place, int(mark), not is_unmarked)


def find_unmarked_nodes(connection: Connection) -> Sequence[str]:
    """Return the names of the nodes that serve the API but do not mark their writes."""
    return connection.scalars(_SELECT_UNMARKED).all()


def load_shown(connection: Connection, place: int | None, node: int) -> tuple[int, int | None]:
    """Return the mark at a place, and the latest beat of a node; None for the beat if none."""
    beat = select(nodes.c.replica_beat).where(nodes.c.number == node).scalar_subquery()
    mark, shown = connection.execute(select(_select_mark(place), beat)).one()
    return int(mark), shown


def _select_mark(place: int | None) -> Any:
    marks = select(func.coalesce(func.sum(_m.mark), 0))
    wanted = _m.place >= 0 if place is None else _m.place == place
    return marks.where(wanted).scalar_subquery()


def store_beat(connection: Connection, node: int) -> int | None:
    """Store a new beat of a node, and return it; None if the node is not known yet."""
    beat = secrets.randbits(_BITS)
    statement = update(nodes).where(nodes.c.number == node).values(replica_beat=beat)
    return beat if connection.execute(statement).rowcount else None


def store_probe(connection: Connection) -> int:
    """Store a mark that is no caller's, and return it."""
    return _store_mark(connection, _PROBE)


def shows_probe(connection: Connection, mark: int) -> bool:
    """Return whether the mark of a probe has arrived."""
    return connection.scalar(select(_m.mark).where(_m.place == _PROBE)) == mark


def _store_mark(connection: Connection, place: int) -> int:
    mark = secrets.randbits(_BITS)
    statement = build_insert(connection, write_marks).values(place=place, mark=mark)
    connection.execute(
        statement.on_conflict_do_update(index_elements=["place"], set_={"mark": mark})
    )
    return mark
