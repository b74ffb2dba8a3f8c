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
    """Why there is no answer."""

    outcome: QueryOutcome
    reason: str
    final: bool = False
    """Whether it would be the same for every other entity."""


EnricherReply: TypeAlias = Enrichment | EnrichmentFailure | None
"""What came of one entity; None where the enricher knows nothing."""


@dataclass(slots=True)
class EnricherReplies:
    """What came of asking for several."""

    answers: dict[Entity, Enrichment | None] = field(default_factory=dict)
    failures: dict[Entity, EnrichmentFailure] = field(default_factory=dict)

    def note(self, entity: Entity, reply: EnricherReply) -> None:
        """Add what came of one."""
        if isinstance(reply, EnrichmentFailure):
            self.failures[entity] = reply
        else:
            self.answers[entity] = reply

    def __contains__(self, entity: Entity) -> bool:
        return entity in self.answers or entity in self.failures

    def update(self, others: EnricherReplies) -> None:
        """Add what came of others."""
        self.answers |= others.answers
        self.failures |= others.failures


PendingReply: TypeAlias = asyncio.Future[EnricherReply]
"""Its result is the reply; it is cancelled where whoever asked gave up before there was one."""


class InFlightQuestions:
    """What one enricher is being asked for, until the answer is kept."""

    def __init__(self) -> None:
        self._open: dict[Entity, PendingReply] = {}

    @contextmanager
    def claim(self, entities: Iterable[Entity]) -> Iterator[QuestionClaim]:
        """Have nobody else ask for those of these that nobody asks for already.

        Claim before looking up what is kept, and keep the answers before leaving: then whoever
        comes finds either the question or the answer.
        """
        claim = QuestionClaim(self, entities)
        try:
            yield claim
        finally:
            claim.release_all()

    def take(self, entity: Entity) -> tuple[PendingReply, bool]:
        """Return the question for an entity, and whether it is a new one."""
        is_new = entity not in self._open
        if is_new:
            self._open[entity] = asyncio.get_running_loop().create_future()
        return self._open[entity], is_new

    def settle(self, entity: Entity, reply: EnricherReply) -> None:
        """Tell everybody who waits. A failure is told to them, and to nobody who comes later."""
        question = self._open.get(entity)
        if question is None:
            return
        question.set_result(reply)
        if isinstance(reply, EnrichmentFailure):
            del self._open[entity]

    def close(self, entity: Entity, question: PendingReply) -> None:
        """End a question; where it has no reply, those who wait for it ask themselves."""
        if self._open.get(entity) is question:
            del self._open[entity]
        question.cancel()


class QuestionClaim:
    """Which entities are one's own to ask for, and which others are asking for."""

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
        """Ask for these, or wait where somebody else is asking for one that was claimed.

        Those that somebody else gave up are claimed anew and left out: they may be kept by now.
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
        """End one's own questions for these."""
        for entity in entities:
            if question := self._own.pop(entity, None):
                self._questions.close(entity, question)

    def release_all(self) -> None:
        """End all of one's own questions."""
        self.release(list(self._own))

    def _take(self, entities: Iterable[Entity]) -> None:
        for entity in entities:
            question, is_new = self._questions.take(entity)
            self._others.pop(entity, None)
            (self._own if is_new else self._others)[entity] = question
