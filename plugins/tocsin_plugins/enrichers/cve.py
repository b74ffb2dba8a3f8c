"""Known exploited vulnerabilities."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, ClassVar

from pydantic import Field

from tocsin import (
    Disposition,
    Enricher,
    Enrichment,
    Entity,
    EntityKind,
    Health,
    LocalPath,
    Tools,
)
from tocsin_plugins.enrichers.watched_file import WatchedFile

_Row = Mapping[str, str]
_NAMES = ("vendorProject", "product", "vulnerabilityName")


class Cve(Enricher):
    """Vulnerabilities that are known to be exploited, and whether by ransomware.

    What ships is a selection of widely exploited ones; `path` replaces it by the whole catalogue of
    CISA (KEV), or by any CSV file with the same columns.
    """

    class Settings(Enricher.Settings):
        """What an enricher of vulnerabilities can be told."""

        path: LocalPath | None = Field(
            default=None,
            description="CISA's catalogue of known exploited vulnerabilities as CSV, instead of "
            "the selection that ships. It is read again when it has changed.",
        )

    name = "cve"
    kinds: ClassVar[frozenset[EntityKind]] = frozenset({EntityKind.CVE})
    standing = True
    batch = 1_000

    def __init__(self, settings: Any, tools: Tools) -> None:
        """Keep what is needed; do no I/O."""
        super().__init__(settings, tools)
        path = settings.path
        self._file = WatchedFile(path, parse_catalog, tools) if path else None

    async def start(self) -> None:
        """Read the file, if there is one; raises Misconfigured where it cannot be read."""
        await self._catalogue()

    async def check(self) -> Health:
        """Return how many vulnerabilities are known."""
        source = self.settings.path or "the selection that ships"
        return Health(detail=f"{source} has {len(await self._catalogue()):,} vulnerabilities")

    async def enrich(self, entities: Sequence[Entity]) -> Sequence[Enrichment]:
        """Return those that are known to be exploited."""
        catalogue = await self._catalogue()
        return [
            _build_enrichment(entity, row)
            for entity in entities
            if (row := catalogue.get(entity.value))
        ]

    async def _catalogue(self) -> Mapping[str, _Row]:
        return await self._file.content() if self._file else _shipped_catalogue()


@cache
def _shipped_catalogue() -> Mapping[str, _Row]:
    return parse_catalog((files(__package__) / "exploited.csv").read_bytes())


def parse_catalog(content: bytes) -> Mapping[str, _Row]:
    """Return the rows of a catalogue by CVE id; ValueError where it has no column of ids."""
    reader = csv.DictReader(content.decode("utf-8-sig").splitlines())
    if "cveID" not in (reader.fieldnames or ()):
        raise ValueError("it has no column cveID; give CISA's catalogue as CSV")
    return {row["cveID"].strip().upper(): row for row in reader if row["cveID"]}


def _build_enrichment(entity: Entity, row: _Row) -> Enrichment:
    vendor, product, title = (row.get(name) or "" for name in _NAMES)
    by_ransomware = (row.get("knownRansomwareCampaignUse") or "").strip().lower() == "known"
    added = row.get("dateAdded") or None
    since = f" since {added}" if added else ""
    also = ", also by ransomware" if by_ransomware else ""
    return Enrichment(
        entity=entity,
        summary=f"Known to be exploited{since}{also}: {title or f'{vendor} {product}'}",
        disposition=Disposition.SUSPICIOUS,
        tags=("known-exploited",) + (("ransomware",) if by_ransomware else ()),
        facts={
            "vendor": vendor,
            "product": product,
            "name": title,
            "added": added,
            "ransomware": by_ransomware,
        },
        link=f"https://nvd.nist.gov/vuln/detail/{entity.value}",
    )
