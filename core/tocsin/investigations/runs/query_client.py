"""Query client of one run: every question and conclusion is a step of the session's ledger."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import timedelta
from typing import Any, TypeVar

import structlog

from tocsin.clock import Clock
from tocsin.investigations.answers import QuestionHandler, SourceReply, encode_reply
from tocsin.investigations.codec import encode_question, question_kind
from tocsin.investigations.evidence import (
    RelationReport,
    find_cited_incidents,
    find_named_entities,
    find_reported_relations,
)
from tocsin.investigations.metrics import InvestigationMetrics
from tocsin.investigations.runs.recorder import LedgerRecorder
from tocsin.investigations.sessions import (
    CONCLUSION,
    MAX_CONCLUSION,
    LedgerStep,
    build_answer,
    is_same_conclusion,
    match_answer,
)
from tocsin.model import Entity, FindEvents, Phase, QueryResult, Question
from tocsin.store import clean_identifier, clean_text

T = TypeVar("T")
MAX_CONCURRENT = 8
"""Maximum number of concurrent questions of a run."""
MAX_CONCURRENT_PER_PROVIDER = 2
"""Maximum number of concurrent questions to the same provider."""
_LONGEST_REASON = 2_000
_LONGEST_SOURCE = 200
_MILLISECOND = timedelta(milliseconds=1)
_LONGEST_TICK = timedelta(seconds=5)
"""Longest time counted between two ticks: beyond it, the machine slept or its clock was set."""
_log = structlog.get_logger()


class SessionQueryClient:
    """Query client of one run: recorded answers are repeated, other questions are asked."""

    def __init__(
        self,
        run: int,
        recorder: LedgerRecorder,
        answer: QuestionHandler,
        clock: Clock,
        meter: InvestigationMetrics,
    ) -> None:
        self._run = run
        self._recorder = recorder
        self._answer = answer
        self._clock = clock
        self._meter = meter
        self._ticked_at = clock.now()
        self._ticked = recorder.elapsed
        self._elapsed = timedelta(0)
        self._phase: Phase | None = None
        self._asked = 0
        self._slots = asyncio.Semaphore(MAX_CONCURRENT)
        self._provider_slots: defaultdict[str, asyncio.Semaphore] = defaultdict(
            lambda: asyncio.Semaphore(MAX_CONCURRENT_PER_PROVIDER)
        )
        self.relations: dict[int, list[RelationReport]] = {}
        """The relations that each step's answer reports."""
        self.citable: set[str] = set()
        """References that the report may cite: the steps, and the incidents in their answers."""
        self.named: defaultdict[str, set[Entity]] = defaultdict(set)
        """The entities that each provider's events name; only providers that named any."""

    @property
    def elapsed(self) -> timedelta:
        """Duration of the run at its last step."""
        return self._elapsed

    @property
    def spent(self) -> timedelta:
        """Current duration of the run, summed over all nodes that ran it."""
        passed = self._clock.now() - self._ticked_at
        return self._ticked + min(max(passed, timedelta(0)), _LONGEST_TICK)

    def tick(self) -> None:
        """Count the time since the last tick; called every second or so."""
        self._ticked, self._ticked_at = self.spent, self._clock.now()

    @property
    def progress(self) -> dict[str, Any]:
        """Progress of the run, as the API shows it."""
        return {"phase": self._phase, "steps": self._recorder.count, "asked": self._asked}

    def enter(self, phase: Phase) -> None:
        """Enter a phase, which the following steps belong to."""
        self._phase = phase

    async def ask(self, question: Question[T]) -> QueryResult[T]:
        """Return the outcome of a question."""
        [only] = await self.ask_all([question])
        return only

    async def ask_all(self, questions: Sequence[Question[T]]) -> list[QueryResult[T]]:
        """Return the outcomes of questions, in order."""
        numbers = self._recorder.allot(len(questions))
        self._asked += len(questions)
        asked = [self._ask(*pair) for pair in zip(numbers, questions, strict=True)]
        done = [_result(end) for end in await asyncio.gather(*asked, return_exceptions=True)]
        self._elapsed = max([self._elapsed, *(step.elapsed for step, _ in done)])
        return [answer for _, answer in done]

    async def _ask(self, number: int, question: Question[T]) -> tuple[LedgerStep, QueryResult[T]]:
        step = self._recorder.find(number)
        answer = None if step is None else match_answer(step, question)
        if step is None or answer is None:
            self._discard(step, question.asked_of)
            step, answer = await self._ask_now(number, question)
        self._collect(step, question, answer.content)
        return step, answer

    def _collect(self, step: LedgerStep, question: Question[Any], content: Any) -> None:
        self.citable |= {step.reference, *find_cited_incidents(content)}
        if relations := find_reported_relations(question, content, step.started_at):
            self.relations[step.number] = relations
        if isinstance(question, FindEvents) and content is not None and content.events:
            self.named[question.provider].update(find_named_entities(content))

    def _discard(self, step: LedgerStep | None, now_asked: str) -> None:
        if step is not None:
            facts = {"step": step.number, "was": step.asked_of or step.kind, "is": now_asked}
            _log.warning("replay diverged from the recorded ledger", **facts)
            self._recorder.drop_from(step.number)

    async def _ask_now(
        self, number: int, question: Question[T]
    ) -> tuple[LedgerStep, QueryResult[T]]:
        kind, phase = question_kind(type(question)), self._phase or Phase.UNDERSTAND
        asked_of, text = question.asked_of, encode_question(question)
        async with self._slot(asked_of), self._slots:
            started_at = self._clock.now()
            reply, answer = await encode_reply(kind, await self._try(question))
            duration = max(self._clock.now() - started_at, timedelta(0))
        step = LedgerStep(
            number=number,
            run=self._run,
            phase=phase,
            kind=kind,
            asked_of=clean_identifier(asked_of, _LONGEST_SOURCE),
            question=text,
            outcome=reply.outcome,
            answer=answer,
            reason=clean_text(reply.reason, _LONGEST_REASON),
            started_at=started_at,
            duration_ms=duration // _MILLISECOND,
            elapsed_ms=self.spent // _MILLISECOND,
        )
        self._meter.count_step(asked_of, reply.outcome)
        await self._recorder.write(step)
        return step, build_answer(step, reply.content)

    def _slot(self, asked_of: str) -> AbstractAsyncContextManager[None]:
        return self._provider_slots[asked_of] if asked_of.startswith("provider:") else nullcontext()

    async def _try(self, question: Question[Any]) -> SourceReply:
        try:
            return await self._answer(question)
        except Exception as error:
            self._recorder.stop(error)
            raise

    async def conclude(self, text: str, evidence: Sequence[str]) -> str:
        """Record a conclusion, and return the reference of its step.

        A conclusion takes no time of its own, and the caller does not wait until it is stored.
        """
        [number] = self._recorder.allot(1)
        self.citable.add(f"step:{number}")
        text = clean_text(text, MAX_CONCLUSION)
        step = self._recorder.find(number)
        if step is not None and is_same_conclusion(step, text, evidence):
            return step.reference
        self._discard(step, CONCLUSION)
        step = LedgerStep(
            number=number,
            run=self._run,
            phase=self._phase or Phase.UNDERSTAND,
            kind=CONCLUSION,
            conclusion=text,
            evidence=tuple(evidence),
            started_at=self._clock.now(),
            elapsed_ms=self._elapsed // _MILLISECOND,
        )
        self._recorder.add(step)
        return step.reference


def _result(ended: T | BaseException) -> T:
    if isinstance(ended, BaseException):
        raise ended
    return ended
