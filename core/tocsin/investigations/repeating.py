"""What stands in the ledger, said again to an investigator that asks the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tocsin.investigations.codec import (
    decode_answer,
    decode_question,
    encode_question,
    question_kind,
)
from tocsin.investigations.sessions.ledger import CONCLUSION, LedgerStep
from tocsin.model import QueryOutcome, QueryResult, Question

MAX_CONCLUSION = 10_000


def build_answer(step: LedgerStep, content: Any) -> QueryResult[Any]:
    """Return what an investigator is told of a step."""
    outcome = step.outcome or QueryOutcome.ANSWERED
    return QueryResult(step=step.reference, outcome=outcome, content=content, reason=step.reason)


def match_answer(step: LedgerStep, question: Question[Any]) -> QueryResult[Any] | None:
    """Return what stands in the ledger for this question, None where the step is of another."""
    if step.kind != question_kind(type(question)) or step.question is None:
        return None
    try:
        is_same = step.question == encode_question(question)
        is_same = is_same or decode_question(step.kind, step.question) == question
        content = None if step.answer is None else decode_answer(step.kind, step.answer)
    except ValueError:  # it was written by another version
        return None
    return build_answer(step, content) if is_same else None


def is_same_conclusion(step: LedgerStep, text: str, evidence: Sequence[str]) -> bool:
    """Return whether a step is this conclusion."""
    return (step.kind, step.conclusion, step.evidence) == (CONCLUSION, text, tuple(evidence))
