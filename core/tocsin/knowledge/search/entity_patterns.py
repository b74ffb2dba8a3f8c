"""Entities of incidents that match a network, an address range or a name with wildcards."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Select, and_, select

from tocsin.knowledge.search import tokens
from tocsin.knowledge.search.entities import NAME_LENGTH, after_every
from tocsin.model import Entity, EntityKind, Window
from tocsin.observables import EntityPattern
from tocsin.store.tables import entities, entity_names

MAX_COMPARED = 20_000
"""Maximum number of entities that are compared with a pattern."""
_n, _e = entity_names.c, entities.c


def find_matching_entities(
    connection: Connection, pattern: EntityPattern, window: Window | None, limit: int
) -> tuple[list[Entity], bool]:
    """Return the matching entities, the latest seen first, and whether these are all.

    With a window, finds only entities that were seen in the window. The names that begin as the
    pattern does are compared, the latest seen 20,000 of them.
    """
    rows = connection.execute(_select_candidates(pattern, window)).all()
    found = (Entity(EntityKind(kind), value) for kind, value in rows[:MAX_COMPARED])
    matching = [entity for entity in found if pattern.matches(entity)]
    return matching[:limit], len(matching) <= limit and len(rows) <= MAX_COMPARED


def _select_candidates(pattern: EntityPattern, window: Window | None) -> Select[Any]:
    conditions = [_n.part == 0, _n.kind.in_([kind.value for kind in pattern.kinds])]
    if beginning := tokens.fold_text(pattern.beginning)[:NAME_LENGTH]:
        conditions += [_n.name >= beginning, _n.name < after_every(beginning)]
    elif pattern.bounds is None:
        ends = [tokens.fold_text(part) for part in pattern.text.split("*")]
        conditions += [_n.name.contains(part, autoescape=True) for part in ends if part]
    if window is not None:
        conditions += [_e.last_seen >= window.start, _e.first_seen < window.end]
    same = and_(_e.kind == _n.kind, _e.value == _n.value)
    return (
        select(_n.kind, _n.value)
        .join_from(entity_names, entities, same)
        .where(*conditions)
        .order_by(_e.last_seen.desc(), _n.kind, _n.value)
        .limit(MAX_COMPARED + 1)
    )
