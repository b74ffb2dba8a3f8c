"""Base class for enrichers, which look up information about entities."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Any, ClassVar

from pydantic import Field
from typing_extensions import TypeVar

from tocsin.fields import Duration, PluginSettings, any_case
from tocsin.hookspecs.configurable import Configurable
from tocsin.model import Enrichment, Entity, EntityKind, Health, Marking, Pap, Tlp

S = TypeVar("S", bound="Enricher.Settings", default=Any)


class Enricher(Configurable[S], ABC):
    """Base class for enrichers, which look up information about entities.

    Tocsin creates one instance for each table [enrichers.<name>]. If `standing` is true for a class
    without a table, Tocsin creates one instance with the class's `name`.

    All methods run in the node's event loop and must not block it. Use `await`, and use
    `asyncio.to_thread` for calls that block or compute for more than a few milliseconds.
    """

    class Settings(PluginSettings):
        """Settings shared by all enrichers; derive your settings from this class."""

        plugin: str = Field(description="The enabled plugin that this enricher uses.")
        kind: str | None = Field(
            default=None,
            description="The enricher to use if the plugin provides several.",
        )
        cache_for: Duration = Field(
            default=timedelta(days=1),
            ge=timedelta(0),
            description="How long Tocsin caches results; 0s disables the cache. Applies only to "
            "online enrichers.",
        )
        requests_per_minute: int = Field(
            default=60,
            ge=1,
            le=100_000,
            description="The maximum number of entities that all nodes together look up per "
            "minute. Applies only to online enrichers.",
        )
        timeout: Duration = Field(
            default=timedelta(seconds=20),
            gt=timedelta(0),
            le=timedelta(minutes=2),
            description="How long the enricher can take to look up one batch of entities.",
        )
        max_tlp: Annotated[Tlp, any_case(Tlp)] = Field(
            default=Tlp.AMBER,
            description="The strictest Traffic Light Protocol marking that the enricher accepts. "
            "Tocsin does not look up entities with stricter markings. Applies only to online "
            "enrichers.",
        )
        max_pap: Annotated[Pap, any_case(Pap)] = Field(
            default=Pap.AMBER,
            description="The strictest Permissible Actions Protocol marking that the enricher "
            "accepts. Tocsin does not look up entities with stricter markings. Applies only to "
            "online enrichers.",
        )

        @property
        def limit(self) -> Marking:
            """The strictest marking of entities that may be looked up."""
            return Marking(self.max_tlp, self.max_pap)

    name: ClassVar[str]
    """The enricher's name, which operators write in the setting `kind`. If the enricher has a table
    in the configuration, reports and ledgers show the table's name instead."""
    kinds: ClassVar[frozenset[EntityKind]]
    """The entity kinds that the enricher supports."""
    online: ClassVar[bool] = False
    """Whether a lookup reveals the entity to a third party. Tocsin does not pass internal entities
    to an online enricher. It caches only the results of online enrichers, for the time in
    `cache_for`."""
    standing: ClassVar[bool] = False
    """Whether the enricher runs without a table in the configuration. All settings then need
    defaults."""
    batch: ClassVar[int] = 1
    """The maximum number of entities per call."""

    async def start(self) -> None:
        """Prepare the enricher. Tocsin calls this method once.

        If `start` raises an error or takes more than a minute, Tocsin reports the enricher as
        unavailable, with the reason.
        """

    async def check(self) -> Health:
        """Return whether the source is available; by default, assume that it is."""
        return Health(detail="no external source")

    @abstractmethod
    async def enrich(self, entities: Sequence[Entity]) -> Sequence[Enrichment]:
        """Return enrichments for the entities that the source knows, in the order of `entities`.

        The kind of each entity is in `kinds`, and there are at most `batch` entities. The same
        request must return the same result until the source's data changes. Raises `TryLater`,
        `Broken` or `Refused` if the source does not answer.
        """
