"""Routing of questions to the sources that answer them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Protocol

import structlog

from tocsin.enrichment import EnrichmentResult
from tocsin.investigations.answers.providers import ProviderEventSearch
from tocsin.investigations.answers.reply import QuestionHandler, SourceReply
from tocsin.loops import PLUGIN_FAILURES, was_cancelled
from tocsin.model import (
    EnricherSource,
    Entity,
    FindEvents,
    GetEnrichments,
    ListSources,
    Marking,
    QueryOutcome,
    Question,
    Sources,
)
from tocsin.store import is_unreachable

_log = structlog.get_logger()


ReadUntil = Callable[[], Awaitable[Mapping[str, datetime]]]
"""Returns up to when each provider was read."""


class EnricherClient(Protocol):
    """What asks enrichers: `tocsin.enrichment.Enrichers`."""

    def sources(self) -> tuple[EnricherSource, ...]:
        """Return who may be asked."""
        ...

    async def ask(
        self, name: str, entities: Sequence[Entity], marking: Marking
    ) -> EnrichmentResult:
        """Return what came of asking one for these entities."""
        ...


class QuestionRouter:
    """Answers every kind of question; it raises only where our own database is in trouble."""

    def __init__(
        self,
        history: QuestionHandler,
        providers: ProviderEventSearch,
        enrichers: EnricherClient,
        read_until: ReadUntil,
    ) -> None:
        """Take what answers from the database, and whom to ask elsewhere."""
        self._history = history
        self._read_until = read_until
        self._providers = providers
        self._enrichers = enrichers
        self._kinds: dict[type[Question[Any]], Callable[[Any], Awaitable[SourceReply]]] = {
            ListSources: self._who_is_there,
            FindEvents: providers.ask,
            GetEnrichments: self._enrich,
        }

    async def __call__(self, question: Question[Any]) -> SourceReply:
        """Return what came of a question."""
        ask = self._kinds.get(type(question), self._history)
        return await ask(question)

    async def _who_is_there(self, _: ListSources) -> SourceReply:
        until = await self._read_until()
        providers = tuple(
            replace(provider, read_until=until.get(provider.name))
            for provider in self._providers.sources()
        )
        sources = Sources(providers=providers, enrichers=self._enrichers.sources())
        return SourceReply(QueryOutcome.ANSWERED, sources)

    async def _enrich(self, question: GetEnrichments) -> SourceReply:
        name, entities, marking = question.enricher, question.entities, question.marking
        try:
            asked = await self._enrichers.ask(name, entities, marking)
        except PLUGIN_FAILURES as error:
            if was_cancelled() or is_unreachable(error) or isinstance(error, OSError):
                raise
            _log.error("an enricher failed", enricher=name, exc_info=error)
            return SourceReply(
                QueryOutcome.UNAVAILABLE, reason=f"it failed ({type(error).__name__})"
            )
        found = asked.enrichments if asked.outcome is QueryOutcome.ANSWERED else None
        return SourceReply(asked.outcome, found, asked.reason)
