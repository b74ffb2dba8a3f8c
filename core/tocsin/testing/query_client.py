"""Scripted query client for investigator tests."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import timedelta
from typing import Any, TypeVar, cast

from tocsin.investigations.evidence import find_cited_incidents
from tocsin.model import Phase, QueryOutcome, QueryResult, Question
from tocsin.testing.query_script import NotThereError, QueryScript, answer_question

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """One step of a run: a question and what came of it, or a conclusion and its evidence."""

    reference: str
    """What cites it, such as `step:3`."""
    phase: Phase | None
    _: KW_ONLY
    question: Question[Any] | None = None
    answered: QueryResult[Any] | None = None
    conclusion: str = ""
    evidence: tuple[str, ...] = ()

    @property
    def said(self) -> Question[Any] | tuple[str, tuple[str, ...]]:
        """The question, or the conclusion with its evidence."""
        return self.question or (self.conclusion, self.evidence)


@dataclass(kw_only=True, slots=True)
class ScriptedQueryClient(QueryScript):
    """Answers questions from what it is given, numbers each step, and keeps it in `steps`.

    Windows, limits and orders are as the service has them. What two tasks ask at once raises
    AssertionError: the order of their steps would be left to chance.
    """

    steps_before: int = 0
    """How many steps earlier runs of the session took."""
    steps: list[RecordedStep] = field(default_factory=list, init=False)
    phases: list[Phase] = field(default_factory=list, init=False)
    """What was entered, in order."""
    _recorded: Sequence[RecordedStep] | None = field(default=None, init=False)
    _trouble: AssertionError | None = field(default=None, init=False)
    _is_asked: bool = field(default=False, init=False)

    @property
    def asked(self) -> list[Question[Any]]:
        """Every question, in the order in which it was asked."""
        return [step.question for step in self.steps if step.question is not None]

    @property
    def elapsed(self) -> timedelta:
        """How long the run had taken at its last step."""
        return len(self.asked) * self.each_takes

    @property
    def references(self) -> set[str]:
        """Everything that may be cited: the steps, and the incidents that answers have named."""
        steps = {step.reference for step in self.steps}
        contents = (step.answered.content for step in self.steps if step.answered)
        return steps | {
            incident for content in contents for incident in find_cited_incidents(content)
        }

    def replay(self) -> ScriptedQueryClient:
        """Return a desk that says what this one has said, and AssertionError to anything else."""
        desk = ScriptedQueryClient(each_takes=self.each_takes, steps_before=self.steps_before)
        desk._recorded = tuple(self.steps)
        return desk

    def check(self) -> None:
        """Raise AssertionError where it was asked what it may not be, or ended early in a replay.

        Call it when the run is over: what it raises within, an investigator may have caught.
        """
        if self._trouble:
            raise self._trouble
        if self._recorded is not None and len(self.steps) < len(self._recorded):
            missing = self._recorded[len(self.steps)]
            raise AssertionError(f"the second run ends before {missing.reference}: {missing.said}")

    def enter(self, phase: Phase) -> None:
        """Note that what follows belongs to this phase."""
        self.phases.append(phase)

    async def ask(self, question: Question[T]) -> QueryResult[T]:
        """Return what came of a question."""
        [only] = await self.ask_all([question])
        return only

    async def ask_all(self, questions: Sequence[Question[T]]) -> list[QueryResult[T]]:
        """Return what came of each, in their order."""
        if self._is_asked:
            raise self._stop("it is asked from two tasks at once; `ask_all` asks side by side")
        self._is_asked = True
        try:
            await asyncio.sleep(0)  # as every real answer lets others go first
        finally:
            self._is_asked = False
        return [self._take(question) for question in questions]

    async def conclude(self, text: str, evidence: Sequence[str]) -> str:
        """Note a conclusion, and what it rests on; return its own step."""
        self._next_recorded((text, tuple(evidence)))
        step = RecordedStep(self._reference, self._phase, conclusion=text, evidence=tuple(evidence))
        self.steps.append(step)
        return step.reference

    def _take(self, question: Question[T]) -> QueryResult[T]:
        recorded = self._next_recorded(question)
        answer = recorded.answered if recorded else self._answer(question)
        self.steps.append(
            RecordedStep(self._reference, self._phase, question=question, answered=answer)
        )
        return cast("QueryResult[T]", answer)

    def _next_recorded(
        self, said: Question[Any] | tuple[str, tuple[str, ...]]
    ) -> RecordedStep | None:
        """Return the step that a replay is at, which must say the same; None without a replay."""
        if self._recorded is None:
            return None
        if len(self.steps) == len(self._recorded):
            raise self._stop(f"the second run goes on where the first had ended: {said}")
        recorded = self._recorded[len(self.steps)]
        if recorded.said != said:
            words = f"the second run goes another way at {recorded.reference}"
            raise self._stop(f"{words}: it was {recorded.said}, and is {said}")
        return recorded

    def _stop(self, words: str) -> AssertionError:
        self._trouble = self._trouble or AssertionError(words)
        return self._trouble

    @property
    def _reference(self) -> str:
        return f"step:{self.steps_before + len(self.steps) + 1}"

    @property
    def _phase(self) -> Phase | None:
        return self.phases[-1] if self.phases else None

    def _answer(self, question: Question[Any]) -> QueryResult[Any]:
        step, of = self._reference, question.asked_of
        if of in self.away:
            return QueryResult(step=step, outcome=QueryOutcome.UNAVAILABLE, reason=self.away[of])
        try:
            content = answer_question(self, question)
        except NotThereError as error:
            return QueryResult(step=step, outcome=QueryOutcome.REFUSED, reason=str(error))
        except TypeError as error:
            raise self._stop(str(error)) from error
        return QueryResult(step=step, outcome=QueryOutcome.ANSWERED, content=content)
