"""Base class of enrichers, which add knowledge about entities."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Any, ClassVar

from pydantic import Field

from tocsin.fields import Duration, PluginSettings, any_case
from tocsin.hookspecs.tools import Tools
from tocsin.model import Enrichment, Entity, EntityKind, Health, Marking, Pap, Tlp


class Enricher(ABC):
    """A source that knows more of entities.

    One is made for each [enrichers.<name>], and one, under the kind's own name, of each kind that
    is `standing` and has no such table.
    """

    class Settings(PluginSettings):
        """What every enricher can be told; derive yours from it."""

        plugin: str = Field(description="The name of the enabled plugin that offers it.")
        kind: str | None = Field(
            default=None, description="Which of the plugin's kinds, where it offers several."
        )
        cache_for: Duration = Field(
            default=timedelta(days=1),
            ge=timedelta(0),
            description="How long an answer is good; 0s keeps none. Only of online enrichers.",
        )
        requests_per_minute: int = Field(
            default=60,
            ge=1,
            le=100_000,
            description="How many entities a minute are asked for, over all nodes. Only of online "
            "enrichers.",
        )
        timeout: Duration = Field(
            default=timedelta(seconds=20),
            gt=timedelta(0),
            le=timedelta(minutes=2),
            description="How long one question may take.",
        )
        max_tlp: Annotated[Tlp, any_case(Tlp)] = Field(
            default=Tlp.AMBER,
            description="Ask only for what is marked so or wider (Traffic Light Protocol). Only of "
            "online enrichers.",
        )
        max_pap: Annotated[Pap, any_case(Pap)] = Field(
            default=Pap.AMBER,
            description="Ask only for what is marked so or freer (Permissible Actions Protocol). "
            "Only of online enrichers.",
        )

        @property
        def limit(self) -> Marking:
            """The strictest marking of what is asked for."""
            return Marking(self.max_tlp, self.max_pap)

    name: ClassVar[str]
    """What the kind is called: the name in the ledger where no table gives another."""
    kinds: ClassVar[frozenset[EntityKind]]
    """What it can be asked for."""
    online: ClassVar[bool] = False
    """Whether asking tells someone outside. Then it is asked for nothing that is internal, and
    answers are kept for `cache_for`; one that is not is always asked anew."""
    standing: ClassVar[bool] = False
    """Whether it runs where no table asks for it; its settings must all have defaults."""
    batch: ClassVar[int] = 1
    """For how many entities it can be asked at once."""

    def __init__(self, settings: Any, tools: Tools) -> None:
        """Keep what is needed; do no I/O. `settings` is an instance of this class's `Settings`."""
        self.settings = settings
        self.tools = tools

    async def start(self) -> None:
        """Get ready, once. Raising leaves this enricher out, with the reason."""

    async def check(self) -> Health:
        """Return whether the source can be asked; by itself, that it needs nothing."""
        return Health(detail="it needs nothing")

    @abstractmethod
    async def enrich(self, entities: Sequence[Entity]) -> Sequence[Enrichment]:
        """Return what is known of these entities, in their order; leave out the unknown.

        They are of `kinds`, and no more than `batch`. The same question must get the same answer
        until what is known changes. Raises `TryLater`, `Broken` or `Refused`.
        """
