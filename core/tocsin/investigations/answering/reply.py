"""What came of a question, before it is a row of the ledger."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from tocsin.model import QueryOutcome, Question


@dataclass(frozen=True, slots=True)
class SourceReply:
    """What came of a question; only one that was answered has content."""

    outcome: QueryOutcome
    content: Any = None
    reason: str | None = None


QuestionHandler = Callable[[Question[Any]], Awaitable[SourceReply]]
"""Asks whom a question is for. It raises only where this service itself is in trouble."""
