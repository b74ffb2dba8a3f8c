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


class CveSettings(Enricher.Settings):
    """Settings of the vulnerability enricher."""

    path: LocalPath | None = Field(
        default=None,
        description="CSV file with CISA's catalog of known exploited vulnerabilities. This file "
        "replaces the built-in list. Tocsin reloads the file when it changes.",
    )


class Cve(Enricher[CveSettings]):
    """Looks up whether a vulnerability is known to be exploited, including in ransomware attacks.

    The shipped list is a selection of widely exploited ones; `path` replaces it with CISA's
    complete catalog (KEV), or any CSV file with the same columns.
    """

    name = "cve"
    kinds: ClassVar[frozenset[EntityKind]] = frozenset({EntityKind.CVE})
    standing = True
    batch = 1_000

    def __init__(self, settings: Any, tools: Tools) -> None:
        """Store the arguments; perform no I/O."""
        super().__init__(settings, tools)
        path = settings.path
        self._file = WatchedFile(path, parse_catalog, tools) if path else None

    async def start(self) -> None:
        """Read the file, if there is one; raises Misconfigured if it cannot be read."""
        await self._catalogue()

    async def check(self) -> Health:
        """Return the number of known vulnerabilities."""
        source = self.settings.path or "the built-in list"
        count = len(await self._catalogue())
        noun = "vulnerability" if count == 1 else "vulnerabilities"
        return Health(detail=f"{source} contains {count:,} {noun}")

    async def enrich(self, entities: Sequence[Entity]) -> Sequence[Enrichment]:
        """Return the known exploited vulnerabilities."""
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
    """Return the rows of a catalog by CVE ID; ValueError if it has no ID column."""
    reader = csv.DictReader(content.decode("utf-8-sig").splitlines())
    if "cveID" not in (reader.fieldnames or ()):
        raise ValueError("column cveID not found; use CISA's catalog as CSV")
    return {row["cveID"].strip().upper(): row for row in reader if row["cveID"]}


def _build_enrichment(entity: Entity, row: _Row) -> Enrichment:
    vendor, product, title = (row.get(name) or "" for name in _NAMES)
    by_ransomware = (row.get("knownRansomwareCampaignUse") or "").strip().lower() == "known"
    added = row.get("dateAdded") or None
    since = f" since {added}" if added else ""
    also = ", including in ransomware attacks" if by_ransomware else ""
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
