"""What stands in the ledger, said again to an investigator that asks the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tocsin.investigations.codec import (
    decode_answer,
    decode_question,
    encode_question,
    kind_of,
)
from tocsin.investigations.sessions.ledger import CONCLUSION, Step
from tocsin.model import Answered, Outcome, Question

LONGEST_CONCLUSION = 10_000


def answered(step: Step, content: Any) -> Answered[Any]:
    """Return what an investigator is told of a step."""
    outcome = step.outcome or Outcome.ANSWERED
    return Answered(step=step.reference, outcome=outcome, content=content, reason=step.reason)


def repeated(step: Step, question: Question[Any]) -> Answered[Any] | None:
    """Return what stands in the ledger for this question, None where the step is of another."""
    if step.kind != kind_of(type(question)) or step.question is None:
        return None
    try:
        is_same = step.question == encode_question(question)
        is_same = is_same or decode_question(step.kind, step.question) == question
        content = None if step.answer is None else decode_answer(step.kind, step.answer)
    except ValueError:  # it was written by another version
        return None
    return answered(step, content) if is_same else None


def is_repeated(step: Step, text: str, evidence: Sequence[str]) -> bool:
    """Return whether a step is this conclusion."""
    return (step.kind, step.conclusion, step.evidence) == (CONCLUSION, text, tuple(evidence))
