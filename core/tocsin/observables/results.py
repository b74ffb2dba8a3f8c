"""Entities and techniques found in a text or record."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import cast

from tocsin.model import Entity

DEFAULT_LIMIT = 10_000

Finds = dict[Entity | str, None]
"""Entities, and ids of ATT&CK techniques, each once and in order: the keys of a dict, since merging
dicts hashes nothing anew, which is most of the work where the same things are found again."""

NOTHING: Finds = {}


def make_finds(*found: Entity | str) -> Finds:
    """Return finds in this order."""
    return dict.fromkeys(found)


@dataclass(frozen=True, slots=True)
class Observables:
    """The entities and techniques of a text or record, each once, the first to appear first."""

    entities: tuple[Entity, ...] = ()
    techniques: tuple[str, ...] = ()
    """ATT&CK ids, such as T1059.001."""
    complete: bool = True
    """False where there is more than was asked for, or more than is looked at."""


class ObservableCollector:
    """What is found, in order of first appearance, up to a limit."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.finds: Finds = {}
        self.complete = True

    @property
    def full(self) -> bool:
        """Whether there is more than the limit."""
        return len(self.finds) > self.limit

    def observables(self) -> Observables:
        """Return what was found, without what is beyond the limit."""
        finds = tuple(islice(self.finds, self.limit))
        complete = self.complete and not self.full
        if str not in map(type, finds):
            return Observables(cast("tuple[Entity, ...]", finds), (), complete)
        entities = tuple(find for find in finds if isinstance(find, Entity))
        techniques = tuple(find for find in finds if isinstance(find, str))
        return Observables(entities, techniques, complete)
