"""Domain names that look generated or deceptive.

Every sign has points, whose sum is the score, and a description. The result is never more than
suspicious, because content networks and trackers use such names too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from pydantic import Field

from tocsin import Disposition, Enricher, Enrichment, Entity, EntityKind, Tools
from tocsin_plugins.enrichers.domain_names import (
    DomainName,
    DomainSign,
    find_lookalikes,
    find_signs,
)
from tocsin_plugins.enrichers.hosts import extract_host

SUSPICIOUS_FROM = 50
_WORST = 100


class DomainsSettings(Enricher.Settings):
    """Settings of the domain enricher."""

    own_domains: tuple[str, ...] = Field(
        default=(),
        description="Domains that attackers may imitate, in addition to those in [environment].",
    )


class Domains(Enricher[DomainsSettings]):
    """Assesses domain names, including those in URLs and email addresses."""

    name = "domains"
    kinds: ClassVar[frozenset[EntityKind]] = frozenset(
        {EntityKind.DOMAIN, EntityKind.URL, EntityKind.EMAIL}
    )
    standing = True
    batch = 1_000

    def __init__(self, settings: Any, tools: Tools) -> None:
        """Store the arguments; perform no I/O."""
        super().__init__(settings, tools)
        own = (*settings.own_domains, *tools.environment.settings.internal_domains)
        self._own = [name for text in dict.fromkeys(own) if (name := DomainName.parse(text))]

    async def enrich(self, entities: Sequence[Entity]) -> Sequence[Enrichment]:
        """Return the warning signs of names that have any."""
        return [enrichment for entity in entities if (enrichment := self._enrich_entity(entity))]

    def _enrich_entity(self, entity: Entity) -> Enrichment | None:
        name = DomainName.parse(extract_host(entity) or "")
        if name is None or any(name.is_below(own) for own in self._own):
            return None
        found = sorted(self._signs(name), key=lambda sign: (-sign.points, sign.tag))
        return _enrichment(entity, found) if found else None

    def _signs(self, name: DomainName) -> Iterator[DomainSign]:
        yield from find_lookalikes(name, self._own)
        yield from find_signs(name)


def _enrichment(entity: Entity, found: Sequence[DomainSign]) -> Enrichment:
    score = min(sum(sign.points for sign in found), _WORST)
    bad = score >= SUSPICIOUS_FROM
    return Enrichment(
        entity=entity,
        summary=f"Its name {', and '.join(sign.words for sign in found)}",
        disposition=Disposition.SUSPICIOUS if bad else Disposition.UNKNOWN,
        score=score,
        tags=tuple(dict.fromkeys(sign.tag for sign in found)),
        facts={"signs": [{"points": sign.points, "says": sign.words} for sign in found]},
    )
