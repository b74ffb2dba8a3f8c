"""What came of a question, before it is a row of the ledger."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from tocsin.model import Outcome, Question


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of a question; only one that was answered has content."""

    outcome: Outcome
    content: Any = None
    reason: str | None = None


Answer = Callable[[Question[Any]], Awaitable[Reply]]
"""Asks whom a question is for. It raises only where this service itself is in trouble."""
