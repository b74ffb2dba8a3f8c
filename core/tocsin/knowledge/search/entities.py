"""Search over the entities of incidents."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    and_,
    func,
    or_,
    select,
    tuple_,
)

from tocsin.errors import InvalidInputError
from tocsin.knowledge.search import tokens
from tocsin.knowledge.search.database_query import MAX_COUNT
from tocsin.model import Entity, EntityKind
from tocsin.store.tables import entities, entity_names

RANKED_NAMES = 200
"""Number of names that are ranked together, in alphabetical order."""
MAX_LOOKUP = 2_048
"""Maximum number of characters of the text to look up."""
NAME_LENGTH = 100
"""Number of characters that a name keeps, as long as the column."""
_LAST = "\U0010ffff"  # sorts behind every other character, in bytes
_n = entity_names.c
_key = tuple_(_n.name, _n.part, _n.kind, _n.value)


@dataclass(frozen=True, slots=True)
class EntityPosition:
    """Start of the next page: after this name, and after `shown` of those ranked from there."""

    name: str
    part: int
    kind: str
    value: str
    shown: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundEntity:
    """An entity whose name matches."""

    entity: Entity
    incident_count: int
    first_seen: datetime
    last_seen: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityPage:
    """One page of entities."""

    entities: tuple[FoundEntity, ...]
    total: int
    exact: bool
    """False if there are more than `total`."""
    next: EntityPosition | None
    """Start of the next page, None on the last page."""


def after_every(beginning: str) -> str:
    """Return a text that sorts behind every name with this beginning."""
    return beginning + _LAST


def list_lookup_names(entity: Entity) -> list[tuple[str, int]]:
    """Return the lookup names of an entity: its value with 0, its parts with 1."""
    folded = tokens.fold_text(entity.value).strip()
    value = folded[:NAME_LENGTH]
    names = {name[:NAME_LENGTH]: 1 for name in tokens.part_tokens(folded)} | {value: 0}
    return list(names.items())


def search_entities(
    connection: Connection,
    text: str,
    *,
    limit: int,
    kinds: Sequence[EntityKind] | None = None,
    after: EntityPosition | None = None,
) -> EntityPage:
    """Return the entities with the name `text`, then those with such a part, then prefix matches.

    Each group is ordered by the number of incidents and the last sighting, 200 names at a time in
    alphabetical order. `text` also stands for the spelling in which Tocsin stores such an address
    or domain, such as `xn--bcher-kva.example` for `bücher.example`. Raises InvalidInputError for an
    empty or too long text.
    """
    beginnings = _beginnings(text)
    ranges = [and_(_n.name >= each, _n.name < after_every(each)) for each in beginnings]
    conditions = [or_(*ranges)]
    if kinds is not None:
        conditions.append(_n.kind.in_([kind.value for kind in kinds]))
    found = _load_names(connection, conditions, after)
    rows = _without_repeats(found[:RANKED_NAMES])
    if after is not None and after.kind:
        rows = [row for row in rows if _is_first(beginnings, row)]
    ranked = _ranked(beginnings, rows)
    shown = after.shown if after else 0
    total, exact = _count(connection, conditions)
    return EntityPage(
        entities=tuple(map(_represent, ranked[shown : shown + limit])),
        total=total,
        exact=exact,
        next=_next(after, found, ranked, shown + limit),
    )


def _beginnings(text: str) -> tuple[str, ...]:
    """Return how matching names begin: as the text is written, and as Tocsin may spell it."""
    folded = tokens.fold_text(text).strip().replace("\0", "")
    if not folded:
        raise InvalidInputError("q: enter a value to look up, such as 192.0.2.1 or evil.example.")
    if len(text) > MAX_LOOKUP:
        raise InvalidInputError(f"q: enter at most {MAX_LOOKUP} characters.")
    kind = EntityKind.IP if folded.isascii() else EntityKind.DOMAIN
    spelled = Entity(kind, folded).value or folded
    return tuple(dict.fromkeys(name[:NAME_LENGTH] for name in (folded, spelled)))


def _load_names(
    connection: Connection, conditions: list[ColumnElement[bool]], after: EntityPosition | None
) -> Sequence[RowMapping]:
    if after is not None and after.kind:
        place = (after.name, after.part, after.kind, after.value)
        # the first bound lets the databases use their index
        conditions = [*conditions, _n.name >= after.name, _key > place]
    chosen = (
        select(_n.name, _n.part, _n.kind, _n.value)
        .where(*conditions)
        .order_by(_n.name, _n.part, _n.kind, _n.value)
        .limit(RANKED_NAMES + 1)
        .subquery()
    )
    query = _with_counts(chosen)
    return connection.execute(query).mappings().all()


def _with_counts(chosen: Any) -> Select[Any]:
    c, e = chosen.c, entities.c
    same = and_(e.kind == c.kind, e.value == c.value)
    return (
        select(c.name, c.part, c.kind, c.value, e.incident_count, e.first_seen, e.last_seen)
        .join(entities, same)
        .order_by(c.name, c.part, c.kind, c.value)
    )


def _without_repeats(found: Iterable[RowMapping]) -> list[RowMapping]:
    """Return the entities of these names, each for the first of its names only."""
    firsts: dict[tuple[str, str], RowMapping] = {}
    for row in found:
        firsts.setdefault((row["kind"], row["value"]), row)
    return list(firsts.values())


def _is_first(beginnings: tuple[str, ...], row: RowMapping) -> bool:
    """Return whether no earlier name of the entity matches, which an earlier part contained."""
    entity = Entity(EntityKind(row["kind"]), row["value"])
    names = (name for name, _ in list_lookup_names(entity) if name.startswith(beginnings))
    return bool(row["name"] == min(names, default=None))


def _ranked(beginnings: Collection[str], found: Iterable[RowMapping]) -> list[RowMapping]:
    """Return the entities in order."""
    rows = sorted(found, key=lambda row: (row["kind"], row["value"]))
    rows.sort(key=lambda row: (row["incident_count"], row["last_seen"]), reverse=True)
    rows.sort(key=lambda row: (row["name"] not in beginnings, row["part"]))
    return rows


def _count(connection: Connection, conditions: list[ColumnElement[bool]]) -> tuple[int, bool]:
    bounded = select(_n.kind, _n.value).where(*conditions).limit(MAX_COUNT + 1).subquery()
    different = select(bounded.c.kind, bounded.c.value).distinct().subquery()
    names = select(func.count()).select_from(bounded).scalar_subquery()
    both = select(names, func.count()).select_from(different)
    seen, total = connection.execute(both).one()
    return min(total, MAX_COUNT), seen <= MAX_COUNT


def _represent(row: RowMapping) -> FoundEntity:
    return FoundEntity(
        entity=Entity(EntityKind(row["kind"]), row["value"]),
        incident_count=row["incident_count"],
        first_seen=row["first_seen"],
        last_seen=row["last_seen"],
    )


def _next(
    after: EntityPosition | None,
    found: Sequence[RowMapping],
    ranked: Sequence[RowMapping],
    shown: int,
) -> EntityPosition | None:
    if shown < len(ranked):
        start = (after.name, after.part, after.kind, after.value) if after else ("", 0, "", "")
        return EntityPosition(*start, shown)
    if len(found) <= RANKED_NAMES:
        return None
    last = found[RANKED_NAMES - 1]
    return EntityPosition(last["name"], last["part"], last["kind"], last["value"], 0)
