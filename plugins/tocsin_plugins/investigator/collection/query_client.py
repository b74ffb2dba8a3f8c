"""Query client within bounds, with an account of unanswered questions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, TypeVar

from tocsin import FindEvents, QueryClient, QueryOutcome, QueryResult, Question, Statement
from tocsin_plugins.investigator.phrases import count_noun, name_source, shorten, state
from tocsin_plugins.investigator.settings import Bounds

T = TypeVar("T")
_AT_ONCE = 16
_PATIENCE = 3


class BoundedQueryClient:
    """A query client that respects bounds and records unanswered questions."""

    def __init__(self, client: QueryClient, bounds: Bounds) -> None:
        self._client = client
        self.bounds = bounds
        self.provider_calls = 0
        self.last_step = ""
        self.answered_by: set[str] = set()
        """The sources that answered at least once."""
        self._unanswered: dict[tuple[str, QueryOutcome, str], list[str]] = {}

    @property
    def is_out_of_time(self) -> bool:
        """Whether the time bound is reached."""
        return self._client.elapsed >= timedelta(seconds=self.bounds.seconds)

    async def ask(self, question: Question[T]) -> QueryResult[T]:
        """Return the outcome of a question."""
        answer = await self._client.ask(question)
        self._note(question, answer)
        return answer

    async def ask_all(self, questions: Sequence[Question[T]]) -> list[QueryResult[T]]:
        """Return the outcomes of questions, in order; only the first ones when time is up."""
        answers: list[QueryResult[T]] = []
        while len(answers) < len(questions) and not self.is_out_of_time:
            some = questions[len(answers) : len(answers) + _AT_ONCE]
            for question, answer in zip(some, await self._client.ask_all(some), strict=True):
                self._note(question, answer)
                answers.append(answer)
        return answers

    def has_given_up_on(self, asked_of: str) -> bool:
        """Return whether a source was unavailable for each of several questions."""
        silent = sum(
            len(steps)
            for (who, outcome, _), steps in self._unanswered.items()
            if who == asked_of and outcome is QueryOutcome.UNAVAILABLE
        )
        return silent >= _PATIENCE and asked_of not in self.answered_by

    def unavailable(self) -> dict[str, str]:
        """Return the sources that were unavailable at least once, with the reason."""
        return {
            asked_of: reason
            for (asked_of, outcome, reason) in sorted(self._unanswered)
            if outcome is QueryOutcome.UNAVAILABLE
        }

    def away(self) -> dict[str, str]:
        """Return the sources that never answered, with the reason."""
        silent = self.unavailable()
        return {who: why for who, why in silent.items() if who not in self.answered_by}

    def gaps(self) -> list[Statement]:
        """Return the questions that were not answered in full, as gaps."""
        return [
            state(
                f"{name_source(asked_of)} {_WORDS[outcome]}{_often(steps)}: {shorten(reason, 300)}",
                *steps,
            )
            for (asked_of, outcome, reason), steps in sorted(self._unanswered.items())
        ]

    def _note(self, question: Question[Any], answer: QueryResult[Any]) -> None:
        self.last_step = answer.step
        self.provider_calls += isinstance(question, FindEvents)
        if answer.outcome is QueryOutcome.ANSWERED and answer.content is not None:
            self.answered_by.add(question.asked_of)
        if answer.outcome is not QueryOutcome.ANSWERED or answer.reason:
            key = (question.asked_of, answer.outcome, answer.reason or "no reason given")
            self._unanswered.setdefault(key, []).append(answer.step)


_WORDS = {
    QueryOutcome.ANSWERED: "returned only part of the results",
    QueryOutcome.UNAVAILABLE: "was unavailable",
    QueryOutcome.REFUSED: "could not be queried",
}


def _often(steps: Sequence[str]) -> str:
    return f" for {count_noun(len(steps), 'query', 'queries')}" if len(steps) > 1 else ""
