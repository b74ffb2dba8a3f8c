"""Earlier sightings of an entity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from tocsin import Enricher, Enrichment, Entity, EntityKind, Sighting


class HistoryEnricher(Enricher):
    """Counts the incidents that involve an entity, and lists the latest ones."""

    name = "history"
    kinds: ClassVar[frozenset[EntityKind]] = frozenset(EntityKind)
    standing = True
    batch = 200

    async def enrich(self, entities: Sequence[Entity]) -> Sequence[Enrichment]:
        """Return the entities that were seen in an incident."""
        sightings = await self.tools.knowledge.sightings(entities)
        return [_build_enrichment(sighting) for sighting in sightings if sighting.incident_count]


def _build_enrichment(sighting: Sighting) -> Enrichment:
    marks = {"internal": sighting.internal, "well-known": sighting.well_known}
    return Enrichment(
        entity=sighting.entity,
        summary=_summarize(sighting),
        tags=tuple(mark for mark, holds in marks.items() if holds),
        facts={
            "incident_count": sighting.incident_count,
            "first_seen": sighting.first_seen and sighting.first_seen.isoformat(),
            "last_seen": sighting.last_seen and sighting.last_seen.isoformat(),
            "recent": list(sighting.recent),
        },
    )


def _summarize(sighting: Sighting) -> str:
    count = sighting.incident_count
    parts = ["Seen in one incident" if count == 1 else f"Seen in {count:,} incidents"]
    if sighting.first_seen and sighting.last_seen:
        first, last = sighting.first_seen.date(), sighting.last_seen.date()
        parts.append(f"on {first}" if first == last else f"from {first} to {last}")
    if sighting.recent:
        parts.append(f"(latest: {', '.join(map(str, sighting.recent[:3]))})")
    return " ".join(parts)
