"""Operator-defined allow, block and watch lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

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
from tocsin_plugins.enrichers.csv_lists import read_csv
from tocsin_plugins.enrichers.list_entries import ListEntry, ListIndex
from tocsin_plugins.enrichers.stix_lists import read_stix
from tocsin_plugins.enrichers.watched_file import WatchedFile

_MEANING = {
    "allow": Disposition.BENIGN,
    "deny": Disposition.MALICIOUS,
    "watch": Disposition.SUSPICIOUS,
}


def _lower(word: Any) -> Any:
    return word.lower() if isinstance(word, str) else word


def select_reader(path: str) -> Callable[[bytes], ListIndex]:
    """Return the reader for a file of this name: STIX 2.1, or CSV."""
    return read_stix if path.lower().endswith((".json", ".stix")) else read_csv


class ListsSettings(Enricher.Settings):
    """Settings of a list enricher."""

    path: LocalPath = Field(
        description="Path of the file. If its name ends in .json or .stix, the format is STIX 2.1. "
        "Otherwise, the format is CSV. Tocsin reloads the file when it changes."
    )
    list: Annotated[Literal["allow", "deny", "watch"], BeforeValidator(_lower)] = Field(
        description="How the enricher rates entities on the list: allow (benign), deny (malicious) "
        "or watch (suspicious)."
    )


class Lists(Enricher[ListsSettings]):
    """Looks up entities in a list from a CSV or STIX 2.1 file."""

    name = "lists"
    kinds: ClassVar[frozenset[EntityKind]] = frozenset(EntityKind)
    batch = 1_000

    def __init__(self, settings: Any, tools: Tools) -> None:
        """Store the arguments; perform no I/O."""
        super().__init__(settings, tools)
        self._file: WatchedFile[ListIndex] = WatchedFile(
            settings.path, select_reader(settings.path), tools
        )

    @property
    def entries(self) -> ListIndex | None:
        """The entries as last read; None before."""
        return self._file.current

    async def start(self) -> None:
        """Read the file; raises Misconfigured if it cannot be read."""
        await self._file.content()

    async def check(self) -> Health:
        """Return the number of entries."""
        entries = await self._file.content()
        count = "1 entry" if len(entries) == 1 else f"{len(entries):,} entries"
        expired = entries.expired(self.tools.clock.now())
        parts = [
            f"{self.settings.path}: {count}",
            *([f"{expired:,} expired"] if expired else []),
            *([f"{entries.skipped:,} unusable"] if entries.skipped else []),
        ]
        return Health(detail="; ".join(parts))

    async def enrich(self, entities: Sequence[Entity]) -> Sequence[Enrichment]:
        """Return the entities that are listed, or inside a listed network or domain."""
        entries, now = await self._file.content(), self.tools.clock.now()
        return [
            self._enrich_entity(entity, entry)
            for entity in entities
            if (entry := entries.find(entity, now))
        ]

    def _enrich_entity(self, entity: Entity, entry: ListEntry) -> Enrichment:
        through = "" if entry.value == entity.value else f" (entry {entry.value})"
        description = f": {entry.description}" if entry.description else ""
        return Enrichment(
            entity=entity,
            summary=f"On the {self.settings.list} list “{self.tools.name}”{through}{description}",
            disposition=_MEANING[self.settings.list],
            score=entry.score,
            tags=(f"{self.settings.list}-list", *entry.tags),
            facts={"list": self.tools.name, "entry": entry.value, "says": entry.description},
        )
