"""Entities and techniques found in a text or record."""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple, cast

from tocsin.model import Entity

DEFAULT_LIMIT = 10_000

Finds = dict[Entity | str, None]
"""Entities and IDs of ATT&CK techniques, each once and in order, as the keys of a dict: merging
dicts reuses hashes, which saves most of the work when the same entities are found again."""

NOTHING: Finds = {}


def make_finds(*found: Entity | str) -> Finds:
    """Return entities and techniques as finds, in this order."""
    return dict.fromkeys(found)


class Observables(NamedTuple):
    """The entities and techniques in a text or record, each once, in order of appearance."""

    entities: tuple[Entity, ...] = ()
    techniques: tuple[str, ...] = ()
    """ATT&CK IDs, such as T1059.001."""
    complete: bool = True
    """Whether these are all results; False if there are more than the limit, or if the input
    exceeds the limits of the search."""


class ObservableCollector:
    """Collector of entities and techniques, in order of first appearance, up to a limit."""

    __slots__ = ("complete", "finds", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.finds: Finds = {}
        self.complete = True

    @property
    def full(self) -> bool:
        """Whether more than the limit was found."""
        return len(self.finds) > self.limit

    def observables(self) -> Observables:
        """Return the observables up to the limit."""
        full = self.full
        finds = tuple(islice(self.finds, self.limit) if full else self.finds)
        complete = self.complete and not full
        if str not in map(type, finds):
            return Observables(cast("tuple[Entity, ...]", finds), (), complete)
        entities = tuple(find for find in finds if isinstance(find, Entity))
        techniques = tuple(find for find in finds if isinstance(find, str))
        return Observables(entities, techniques, complete)
