"""Sides of an activity: the entities that are named as source and as target."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tocsin import Entity, EntityKind, RelationType, SiemEvent

_SIDES = frozenset(
    {
        RelationType.CONNECTED_TO,
        RelationType.LOGGED_ON_TO,
        RelationType.EXECUTED_ON,
        RelationType.SENT_TO,
    }
)
_ENDS = frozenset({EntityKind.IP, EntityKind.HOST, EntityKind.EMAIL, EntityKind.USER})


@dataclass(frozen=True, slots=True)
class Sides:
    """The entities that an incident or event names as source and as target."""

    sources: frozenset[Entity] = frozenset()
    targets: frozenset[Entity] = frozenset()

    @property
    def is_known(self) -> bool:
        """Whether a side is named."""
        return bool(self.sources or self.targets)


def find_event_sides(event: SiemEvent) -> Sides:
    """Return the sides of an event, by its relations."""
    flows = [relation for relation in event.relations if relation.type in _SIDES]
    return separate_sides(
        (flow.source for flow in flows if flow.source.kind in _ENDS),
        (flow.target for flow in flows),
    )


def separate_sides(sources: Iterable[Entity], targets: Iterable[Entity]) -> Sides:
    """Return sides; an entity on both is on neither."""
    one, other = frozenset(sources), frozenset(targets)
    return Sides(one - other, other - one)
