"""What relates two entities of one record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from tocsin import Entity, Relation, RelationType


def relate(
    sources: Iterable[Entity], kind: RelationType, targets: Iterable[Entity], at: datetime
) -> Iterator[Relation]:
    """Yield that each of the sources has to do with each of the targets."""
    others = tuple(targets)
    for source in sources:
        for target in others:
            if source != target:
                yield Relation(source=source, type=kind, target=target, at=at)
