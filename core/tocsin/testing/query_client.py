"""Scripted query client for investigator tests."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import timedelta
from typing import Any, TypeVar, cast

from tocsin.investigations import find_cited_incidents
from tocsin.model import Phase, QueryOutcome, QueryResult, Question
from tocsin.testing.query_script import NotThereError, QueryScript, answer_question

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """A step of a run: a question with its result, or a conclusion with its evidence."""

    reference: str
    """The reference with which a report cites the step, such as `step:3`."""
    phase: Phase | None
    _: KW_ONLY
    question: Question[Any] | None = None
    answered: QueryResult[Any] | None = None
    conclusion: str = ""
    evidence: tuple[str, ...] = ()

    @property
    def content(self) -> Question[Any] | tuple[str, tuple[str, ...]]:
        """The question, or the conclusion with its evidence."""
        return self.question or (self.conclusion, self.evidence)


@dataclass(kw_only=True, slots=True)
class ScriptedQueryClient(QueryScript):
    """A query client that answers from a script and stores each step in `steps`.

    Windows, limits and the order of results are the same as in the service. If two tasks ask
    questions at the same time, the client raises AssertionError, because the order of the steps
    would be random.
    """

    steps_before: int = 0
    """How many steps there were in earlier runs of the session."""
    steps: list[RecordedStep] = field(default_factory=list, init=False)
    phases: list[Phase] = field(default_factory=list, init=False)
    """The phases that the investigator entered, in order."""
    _recorded: Sequence[RecordedStep] | None = field(default=None, init=False)
    _trouble: AssertionError | None = field(default=None, init=False)
    _is_asked: bool = field(default=False, init=False)

    @property
    def asked(self) -> list[Question[Any]]:
        """The questions that the investigator asked, in order."""
        return [step.question for step in self.steps if step.question is not None]

    @property
    def elapsed(self) -> timedelta:
        """The time from the start of the run to its last step."""
        return len(self.asked) * self.each_takes

    @property
    def references(self) -> set[str]:
        """The references that a report can cite: steps, and incidents in the steps' results."""
        steps = {step.reference for step in self.steps}
        contents = (step.answered.content for step in self.steps if step.answered)
        return steps | {
            incident for content in contents for incident in find_cited_incidents(content)
        }

    def replay(self) -> ScriptedQueryClient:
        """Return a client that replays this run and raises AssertionError if a step differs."""
        client = ScriptedQueryClient(each_takes=self.each_takes, steps_before=self.steps_before)
        client._recorded = tuple(self.steps)
        return client

    def check(self) -> None:
        """Raise AssertionError if the client rejected a step or a replay ended too early.

        Call this method after the run, because the investigator might have caught the error that
        the client raised during the run.
        """
        if self._trouble:
            raise self._trouble
        if self._recorded is not None and len(self.steps) < len(self._recorded):
            missing = self._recorded[len(self.steps)]
            raise AssertionError(
                f"the second run ends before {missing.reference}: {missing.content}"
            )

    def enter(self, phase: Phase) -> None:
        """Start this phase."""
        self.phases.append(phase)

    async def ask(self, question: Question[T]) -> QueryResult[T]:
        """Return the result of a question."""
        [only] = await self.ask_all([question])
        return only

    async def ask_all(self, questions: Sequence[Question[T]]) -> list[QueryResult[T]]:
        """Return the results of several questions, in order."""
        if self._is_asked:
            raise self._stop(
                "two tasks asked at the same time; use `ask_all` for concurrent questions"
            )
        self._is_asked = True
        try:
            await asyncio.sleep(0)  # yield to other tasks, like every real query
        finally:
            self._is_asked = False
        return [self._take(question) for question in questions]

    async def conclude(self, text: str, evidence: Sequence[str]) -> str:
        """Record a conclusion with its evidence and return its step."""
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
        self, content: Question[Any] | tuple[str, tuple[str, ...]]
    ) -> RecordedStep | None:
        """Return the recorded step that a replay must repeat; None without a replay."""
        if self._recorded is None:
            return None
        if len(self.steps) == len(self._recorded):
            raise self._stop(f"the second run continues after the end of the first: {content}")
        recorded = self._recorded[len(self.steps)]
        if recorded.content != content:
            message = f"the second run diverges at {recorded.reference}"
            raise self._stop(f"{message}: was {recorded.content}, is {content}")
        return recorded

    def _stop(self, message: str) -> AssertionError:
        self._trouble = self._trouble or AssertionError(message)
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
