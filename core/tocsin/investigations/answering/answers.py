"""Whom each question is for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Protocol

import structlog

from tocsin.enrichment import Asked
from tocsin.investigations.answering.providers import ProviderEvents
from tocsin.investigations.answering.reply import Answer, Reply
from tocsin.loops import PLUGIN_FAILURES, was_cancelled
from tocsin.model import (
    EnricherSource,
    EnrichmentsOf,
    Entity,
    EventsOf,
    Marking,
    Outcome,
    Question,
    Sources,
    WhoIsThere,
)
from tocsin.store import is_unreachable

_log = structlog.get_logger()


ReadUntil = Callable[[], Awaitable[Mapping[str, datetime]]]
"""Returns up to when each provider was read."""


class Enriching(Protocol):
    """What asks enrichers: `tocsin.enrichment.Enrichers`."""

    def sources(self) -> tuple[EnricherSource, ...]:
        """Return who may be asked."""
        ...

    async def ask(self, name: str, entities: Sequence[Entity], marking: Marking) -> Asked:
        """Return what came of asking one for these entities."""
        ...


class Answers:
    """Answers every kind of question; it raises only where our own database is in trouble."""

    def __init__(
        self,
        history: Answer,
        providers: ProviderEvents,
        enrichers: Enriching,
        read_until: ReadUntil,
    ) -> None:
        """Take what answers from the database, and whom to ask elsewhere."""
        self._history = history
        self._read_until = read_until
        self._providers = providers
        self._enrichers = enrichers
        self._kinds: dict[type[Question[Any]], Callable[[Any], Awaitable[Reply]]] = {
            WhoIsThere: self._who_is_there,
            EventsOf: providers.ask,
            EnrichmentsOf: self._enrich,
        }

    async def __call__(self, question: Question[Any]) -> Reply:
        """Return what came of a question."""
        ask = self._kinds.get(type(question), self._history)
        return await ask(question)

    async def _who_is_there(self, _: WhoIsThere) -> Reply:
        until = await self._read_until()
        providers = tuple(
            replace(provider, read_until=until.get(provider.name))
            for provider in self._providers.sources()
        )
        sources = Sources(providers=providers, enrichers=self._enrichers.sources())
        return Reply(Outcome.ANSWERED, sources)

    async def _enrich(self, question: EnrichmentsOf) -> Reply:
        name, entities, marking = question.enricher, question.entities, question.marking
        try:
            asked = await self._enrichers.ask(name, entities, marking)
        except PLUGIN_FAILURES as error:
            if was_cancelled() or is_unreachable(error) or isinstance(error, OSError):
                raise
            _log.error("an enricher failed", enricher=name, exc_info=error)
            return Reply(Outcome.UNAVAILABLE, reason=f"it failed ({type(error).__name__})")
        found = asked.enrichments if asked.outcome is Outcome.ANSWERED else None
        return Reply(asked.outcome, found, asked.reason)
