"""Query client that answers from a ledger alone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TypeVar

from tocsin.errors import TocsinError
from tocsin.investigations.codec import question_kind
from tocsin.investigations.sessions import (
    MAX_CONCLUSION,
    LedgerStep,
    is_same_conclusion,
    match_answer,
)
from tocsin.model import Phase, QueryResult, Question
from tocsin.store import clean_text

T = TypeVar("T")


class LedgerExhausted(TocsinError):  # noqa: N818 - a state, not a mistake
    """The investigator continues beyond the end of the ledger."""


class ReplayDiverged(TocsinError):  # noqa: N818 - what was found, not a mistake
    """The investigator differs from the ledger."""


class RecordedQueryClient:
    """Answers from the steps of one run, until it raises LedgerExhausted or ReplayDiverged."""

    def __init__(self, steps: Sequence[LedgerStep], first: int) -> None:
        self._steps = {step.number: step for step in steps}
        self._next = first
        self._elapsed = timedelta(0)
        self.error: TocsinError | None = None
        """The error that it has raised."""

    @property
    def elapsed(self) -> timedelta:
        """Duration of the run at its last step."""
        return self._elapsed

    def enter(self, phase: Phase) -> None:
        """Ignore the phase, which is only shown while an investigation runs."""

    async def ask(self, question: Question[T]) -> QueryResult[T]:
        """Return the recorded outcome of a question."""
        step = self._next_step(f"asks {question.asked_of} ({question_kind(type(question))})")
        answer: QueryResult[T] | None = match_answer(step, question)
        if answer is None:
            raise self._stop(
                ReplayDiverged(f"{step.reference} is not the same query as {question}")
            )
        self._elapsed = max(self._elapsed, step.elapsed)
        return answer

    async def ask_all(self, questions: Sequence[Question[T]]) -> list[QueryResult[T]]:
        """Return the recorded outcomes of questions, in order."""
        return [await self.ask(question) for question in questions]

    async def conclude(self, text: str, evidence: Sequence[str]) -> str:
        """Return the reference of a recorded conclusion."""
        text = clean_text(text, MAX_CONCLUSION)
        step = self._next_step(f"concludes {text!r:.200}")
        if not is_same_conclusion(step, text, evidence):
            message = f"{step.reference} is not the same conclusion as {text!r:.200}"
            raise self._stop(ReplayDiverged(message))
        return step.reference

    def check_end(self) -> None:
        """Raise ReplayDiverged if the ledger has more steps."""
        if step := self._steps.get(self._next):
            raise ReplayDiverged(f"{step.reference} is not repeated ({step.asked_of or step.kind})")

    def _next_step(self, what: str) -> LedgerStep:
        if self.error is not None:
            raise self.error
        number, self._next = self._next, self._next + 1
        if step := self._steps.get(number):
            return step
        message = f"step:{number} is not in the ledger: the investigator {what}"
        raise self._stop(LedgerExhausted(message))

    def _stop(self, error: TocsinError) -> TocsinError:
        self.error = error
        return error
