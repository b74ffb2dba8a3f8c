"""ATT&CK techniques of the incidents that involve an entity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

from tocsin import Enricher, Enrichment, Entity, EntityKind
from tocsin_plugins.attack import TACTICS, find_tactics, find_technique_name

_INCIDENTS = 50
_SHOWN_TECHNIQUES = 3


class Attack(Enricher):
    """Lists the techniques and tactics of the latest incidents that involve an entity.

    It is not `standing`, because investigations always read the techniques of their incidents.
    """

    name = "attack"
    kinds: ClassVar[frozenset[EntityKind]] = frozenset(EntityKind)
    batch = 20

    async def enrich(self, entities: Sequence[Entity]) -> Sequence[Enrichment]:
        """Return the techniques for entities whose incidents have any."""
        found = [await self._techniques(entity) for entity in entities]
        return [
            _build_enrichment(entity, counts)
            for entity, counts in zip(entities, found, strict=True)
            if counts
        ]

    async def _techniques(self, entity: Entity) -> Counter[str]:
        """Return the number of recent incidents for each technique."""
        records = await self.tools.knowledge.incidents_about([entity], None, _INCIDENTS)
        return Counter(name for record in records for name in dict.fromkeys(record.techniques))


def _build_enrichment(entity: Entity, counts: Counter[str]) -> Enrichment:
    techniques = sorted(counts, key=lambda name: (-counts[name], name))
    served = {tactic for name in techniques for tactic in find_tactics(name)}
    tactics = [tactic for tactic in TACTICS if tactic in served]
    named = [f"{name} {find_technique_name(name) or ''}".strip() for name in techniques]
    more = f" and {len(named) - _SHOWN_TECHNIQUES} more" if len(named) > _SHOWN_TECHNIQUES else ""
    return Enrichment(
        entity=entity,
        summary=f"Techniques in its latest incidents: {', '.join(named[:_SHOWN_TECHNIQUES])}{more}",
        tags=tuple(tactics),
        techniques=tuple(techniques),
        facts={
            "tactics": tactics,
            "techniques": {name: counts[name] for name in techniques},
        },
    )
