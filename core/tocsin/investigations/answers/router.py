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
from tocsin.observables import Environment
from tocsin.store import Redactor, find_fault

_log = structlog.get_logger()


ReadUntil = Callable[[], Awaitable[Mapping[str, datetime]]]
"""Returns the time up to which each provider has been read."""


LoadRedactor = Callable[[], Awaitable[Redactor | None]]
"""Returns what replaces erased values, None as long as nothing was erased."""


class EnricherQueries(Protocol):
    """Client for enrichers, implemented by `tocsin.enrichment.Enrichers`."""

    def sources(self) -> tuple[EnricherSource, ...]:
        """Return the enrichers that can be asked."""
        ...

    async def ask(
        self, name: str, entities: Sequence[Entity], marking: Marking
    ) -> EnrichmentResult:
        """Return the outcome of asking one enricher about these entities."""
        ...


class QuestionRouter:
    """Routes each question to its source. Raises only if Tocsin's own database fails."""

    def __init__(
        self,
        history: QuestionHandler,
        providers: ProviderEventSearch,
        enrichers: EnricherQueries,
        read_until: ReadUntil,
        environment: Environment,
        *,
        load_redactor: LoadRedactor | None = None,
    ) -> None:
        """Take the answers from the database, and the sources outside it.

        What these answer is redacted; None only where nothing is ever erased.
        """
        self._load_redactor = load_redactor
        self._environment = environment
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
        """Return the outcome of a question."""
        ask = self._kinds.get(type(question))
        if ask is None:
            return await self._history(question)
        reply = await ask(question)
        redactor = await self._load_redactor() if self._load_redactor else None
        return replace(reply, content=redactor.redact(reply.content)) if redactor else reply

    async def _who_is_there(self, _: ListSources) -> SourceReply:
        until = await self._read_until()
        providers = tuple(
            replace(provider, read_until=until.get(provider.name))
            for provider in self._providers.sources()
        )
        sources = Sources(
            providers=providers,
            enrichers=self._enrichers.sources(),
            names_networks=self._environment.names_networks,
        )
        return SourceReply(QueryOutcome.ANSWERED, sources)

    async def _enrich(self, question: GetEnrichments) -> SourceReply:
        name, entities, marking = question.enricher, question.entities, question.marking
        try:
            asked = await self._enrichers.ask(name, entities, marking)
        except PLUGIN_FAILURES as error:
            if was_cancelled() or find_fault(error) is not None or isinstance(error, OSError):
                raise
            _log.error("enricher failed", enricher=name, exc_info=error)
            return SourceReply(
                QueryOutcome.UNAVAILABLE, reason=f"internal error ({type(error).__name__})"
            )
        found = asked.enrichments if asked.outcome is QueryOutcome.ANSWERED else None
        return SourceReply(asked.outcome, found, asked.reason)
