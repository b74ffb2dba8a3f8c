"""Storage of relations and their sources."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson
from sqlalchemy import Connection, RowMapping, bindparam, delete, false, select, tuple_

from tocsin.knowledge.graph.nodes import normalize_node
from tocsin.knowledge.sql_lists import parse_incident_number
from tocsin.model import Marking, Node, NodeKind, RelationType
from tocsin.store import BulkStatement, build_insert, lock_exclusively, lock_shared
from tocsin.store.tables import relation_sources, relations

MAX_SOURCES = 20
"""Number of newest sources stored for each relation."""
_CHUNK = 500
_LOCK = "relations"
_Ends = tuple[Node, RelationType, Node]


@dataclass(frozen=True, slots=True)
class ObservedRelation:
    """An edge seen at a moment, with the marking of its source."""

    source: Node
    type: RelationType
    target: Node
    at: datetime
    marking: Marking = field(default_factory=Marking)


def record_relations(
    connection: Connection, seen: Mapping[str, Iterable[ObservedRelation]]
) -> None:
    """Store edges by their source, such as `session:ses_01J...#12` or `enricher:history`.

    A relation is counted once for each moment outside its known time range, so repeated reports do
    not count. The newest sources and the strictest marking are kept. Relations of a node with
    itself and with invalid incident numbers are left out. All writers lock relations in the order
    of their digests, so that they cannot deadlock.
    """
    updates = _collect_updates(seen)
    if not updates:
        return
    lock_shared(connection, _LOCK)
    _LOCK_OR_INSERT.run(connection, [update.new_row for update in updates])
    for start in range(0, len(updates), _CHUNK):
        _record(connection, updates[start : start + _CHUNK])


def lock_relations(connection: Connection) -> None:
    """Exclude all writers of relations until this transaction ends."""
    lock_exclusively(connection, _LOCK)


@dataclass(slots=True)
class _RelationUpdate:
    """All reports of one relation."""

    ends: _Ends
    digest: str
    tlp: int = 0
    pap: int = 0
    moments: set[datetime] = field(default_factory=set)
    sources: dict[str, datetime] = field(default_factory=dict)

    def add(self, seen: ObservedRelation, known_from: str) -> None:
        self.tlp = max(self.tlp, seen.marking.tlp.rank)
        self.pap = max(self.pap, seen.marking.pap.rank)
        self.moments.add(seen.at)
        self.sources[known_from] = max(self.sources.get(known_from, seen.at), seen.at)

    @property
    def new_row(self) -> tuple[Any, ...]:
        """The relation as a row of `_COLUMNS`, if it is not known yet."""
        moments = self.moments
        return self._row(min(moments), max(moments), len(moments), self.tlp, self.pap)

    def changed(self, known: RowMapping) -> tuple[Any, ...] | None:
        """Return the relation as a row of `_COLUMNS`; None if nothing changes."""
        first, last = min(self.moments), max(self.moments)
        old = (*(known[name] for name in _CHANGING),)
        new = (
            min(first, known["first_seen"]),
            max(last, known["last_seen"]),
            known["count"]
            + sum(
                not known["first_seen"] <= moment <= known["last_seen"] for moment in self.moments
            ),
            max(self.tlp, known["tlp"]),
            max(self.pap, known["pap"]),
        )
        return None if new == old else self._row(*new)

    def _row(self, *changing: Any) -> tuple[Any, ...]:
        source, type_, target = self.ends
        ends = (source.kind, source.value, type_.value, target.kind, target.value)
        return (self.digest, *ends, *changing)


def _collect_updates(seen: Mapping[str, Iterable[ObservedRelation]]) -> list[_RelationUpdate]:
    """Return each relation once, with all its reports, in the order of their digests."""
    spelt: dict[_Ends, _RelationUpdate | None] = {}
    updates: dict[str, _RelationUpdate] = {}
    for known_from, several in seen.items():
        for one in several:
            ends = (one.source, one.type, one.target)
            if ends not in spelt:
                new = _new_update(ends)
                spelt[ends] = new and updates.setdefault(new.digest, new)
            if (update := spelt[ends]) is not None:
                update.add(one, known_from)
    return [updates[digest] for digest in sorted(updates)]


def _new_update(ends: _Ends) -> _RelationUpdate | None:
    """Return a relation without reports; None if it is invalid."""
    source, type_, target = normalize_node(ends[0]), ends[1], normalize_node(ends[2])
    if source == target or not (_is_node(source) and _is_node(target)):
        return None
    ends_ = (source, type_, target)
    return _RelationUpdate(ends_, _digest_ends(*ends_))


def _digest_ends(source: Node, type_: str, target: Node) -> str:
    parts = [source.kind, source.value, type_, target.kind, target.value]
    return hashlib.sha256(orjson.dumps(parts)).hexdigest()


def digest_relation(row: Mapping[str, Any]) -> str:
    """Return the digest of a row, whose ends have changed."""
    source = Node(row["source_kind"], row["source_value"])
    return _digest_ends(source, row["type"], Node(row["target_kind"], row["target_value"]))


def _is_node(node: Node) -> bool:
    return bool(node.value) and (
        node.kind != NodeKind.INCIDENT or parse_incident_number(node) is not None
    )


def _record(connection: Connection, updates: Sequence[_RelationUpdate]) -> None:
    """Update relations that this transaction has locked or inserted, with their sources."""
    known = _load_known(connection, [update.digest for update in updates])
    rows = [row for update in updates if (row := update.changed(known[update.digest]))]
    _UPSERT.run(connection, rows)
    kept = _load_sources(connection, [row["id"] for row in known.values()])
    added: list[tuple[Any, ...]] = []
    dropped: list[tuple[int, str]] = []
    for update in updates:
        relation = known[update.digest]["id"]
        before = kept[relation]
        newest = _newest(before, update.sources)
        added += [(relation, *one) for one in newest.items() if one not in before.items()]
        dropped += [(relation, source) for source in before if source not in newest]
    if dropped:
        connection.execute(_DROP, {"dropped": dropped})
    _ADD_SOURCES.run(connection, added)


def _load_known(connection: Connection, digests: Sequence[str]) -> dict[str, RowMapping]:
    rows = connection.execute(_KNOWN, {"digests": digests}).mappings()
    return {row["digest"]: row for row in rows}


def _load_sources(
    connection: Connection, ids: Sequence[int]
) -> defaultdict[int, dict[str, datetime]]:
    kept: defaultdict[int, dict[str, datetime]] = defaultdict(dict)
    for relation, source, at in connection.execute(_SOURCES, {"ids": ids}):
        kept[relation][source] = at
    return kept


def _newest(before: Mapping[str, datetime], updates: Mapping[str, datetime]) -> dict[str, datetime]:
    """Return the newest sources, each with the time at which it last saw the relation."""
    latest = {source: max(at, before.get(source, at)) for source, at in updates.items()}
    every = {**before, **latest}
    if len(every) <= MAX_SOURCES:
        return every
    ordered = sorted(every.items(), key=lambda item: (item[1], item[0]), reverse=True)
    return dict(ordered[:MAX_SOURCES])


_CHANGING = ("first_seen", "last_seen", "count", "tlp", "pap")
_COLUMNS = (
    "digest",
    "source_kind",
    "source_value",
    "type",
    "target_kind",
    "target_value",
    *_CHANGING,
)
_r, _s = relations.c, relation_sources.c
_KNOWN = select(_r.id, _r.digest, *(_r[name] for name in _CHANGING)).where(
    _r.digest.in_(bindparam("digests", expanding=True))
)
_SOURCES = select(_s.relation_id, _s.source, _s.at).where(
    _s.relation_id.in_(bindparam("ids", expanding=True))
)
_DROP = delete(relation_sources).where(
    tuple_(_s.relation_id, _s.source).in_(bindparam("dropped", expanding=True))
)


def _build_lock(connection: Connection) -> Any:
    """Return the statement that inserts a relation, or locks the known one and changes nothing."""
    statement = build_insert(connection, relations)
    unchanged = {"count": relations.c.count}
    return statement.on_conflict_do_update(index_elements=["digest"], set_=unchanged, where=false())


def _build_upsert(connection: Connection) -> Any:
    statement = build_insert(connection, relations)
    changes = {name: statement.excluded[name] for name in _CHANGING}
    return statement.on_conflict_do_update(index_elements=["digest"], set_=changes)


def _build_source_upsert(connection: Connection) -> Any:
    statement = build_insert(connection, relation_sources)
    return statement.on_conflict_do_update(
        index_elements=["relation_id", "source"], set_={"at": statement.excluded["at"]}
    )


_LOCK_OR_INSERT = BulkStatement(_build_lock, _COLUMNS)
_UPSERT = BulkStatement(_build_upsert, _COLUMNS)
_ADD_SOURCES = BulkStatement(_build_source_upsert, ("relation_id", "source", "at"))
