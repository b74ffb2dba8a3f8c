"""Requests to enrichers in flight, shared by concurrent callers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

from tocsin.model import Enrichment, Entity, QueryOutcome


@dataclass(frozen=True, slots=True)
class EnrichmentFailure:
    """Reason why there is no reply."""

    outcome: QueryOutcome
    reason: str
    final: bool = False
    """Whether it would be the same for every other entity."""


EnricherReply: TypeAlias = Enrichment | EnrichmentFailure | None
"""Reply for one entity; None if the enricher knows nothing."""


@dataclass(slots=True)
class EnricherReplies:
    """Replies for several entities."""

    answers: dict[Entity, Enrichment | None] = field(default_factory=dict)
    failures: dict[Entity, EnrichmentFailure] = field(default_factory=dict)

    def note(self, entity: Entity, reply: EnricherReply) -> None:
        """Add the reply for one entity."""
        if isinstance(reply, EnrichmentFailure):
            self.failures[entity] = reply
        else:
            self.answers[entity] = reply

    def __contains__(self, entity: Entity) -> bool:
        return entity in self.answers or entity in self.failures

    def update(self, others: EnricherReplies) -> None:
        """Add other replies."""
        self.answers |= others.answers
        self.failures |= others.failures


PendingReply: TypeAlias = asyncio.Future[EnricherReply]
"""Future of a reply; cancelled if the asking caller gave up before there was one."""


class InFlightQuestions:
    """Questions to one enricher, until their replies are stored."""

    def __init__(self) -> None:
        self._open: dict[Entity, PendingReply] = {}

    @contextmanager
    def claim(self, entities: Iterable[Entity]) -> Iterator[QuestionClaim]:
        """Reserve the entities without a question in progress.

        Claim before looking up the cache, and store replies before leaving: callers that arrive
        meanwhile find either the question or the stored reply.
        """
        claim = QuestionClaim(self, entities)
        try:
            yield claim
        finally:
            claim.release_all()

    def take(self, entity: Entity) -> tuple[PendingReply, bool]:
        """Return the question for an entity, and whether it is new."""
        is_new = entity not in self._open
        if is_new:
            self._open[entity] = asyncio.get_running_loop().create_future()
        return self._open[entity], is_new

    def settle(self, entity: Entity, reply: EnricherReply) -> None:
        """Pass the reply to all waiting callers. A failure is not kept for later ones."""
        question = self._open.get(entity)
        if question is None:
            return
        question.set_result(reply)
        if isinstance(reply, EnrichmentFailure):
            del self._open[entity]

    def close(self, entity: Entity, question: PendingReply) -> None:
        """End a question; without a reply, its waiting callers ask themselves."""
        if self._open.get(entity) is question:
            del self._open[entity]
        question.cancel()


class QuestionClaim:
    """Entities that this caller asks about, and those that other callers ask about."""

    def __init__(self, questions: InFlightQuestions, entities: Iterable[Entity]) -> None:
        self._questions = questions
        self._own: dict[Entity, PendingReply] = {}
        self._others: dict[Entity, PendingReply] = {}
        self._take(entities)

    async def ask(
        self,
        ask: Callable[[Sequence[Entity]], Awaitable[EnricherReplies]],
        entities: Sequence[Entity],
    ) -> EnricherReplies:
        """Ask about these entities, or wait for the callers that already ask about them.

        Entities that another caller gave up are claimed and left out: they may be stored by now.
        """
        waited_for = {entity: self._others[entity] for entity in entities if entity in self._others}
        replies = await ask([entity for entity in entities if entity not in waited_for])
        if waited_for:
            await asyncio.wait(waited_for.values())
        for entity, question in waited_for.items():
            if question.cancelled():
                self._take([entity])
            else:
                replies.note(entity, question.result())
        return replies

    def release(self, entities: Iterable[Entity]) -> None:
        """End this caller's questions for these entities."""
        for entity in entities:
            if question := self._own.pop(entity, None):
                self._questions.close(entity, question)

    def release_all(self) -> None:
        """End all questions of this caller."""
        self.release(list(self._own))

    def _take(self, entities: Iterable[Entity]) -> None:
        for entity in entities:
            question, is_new = self._questions.take(entity)
            self._others.pop(entity, None)
            (self._own if is_new else self._others)[entity] = question
