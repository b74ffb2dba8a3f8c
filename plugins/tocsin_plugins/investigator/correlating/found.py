"""What a rule finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tocsin import Entity, Severity, Statement


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingDraft:
    """Something that a rule found; `strength`, from 0 to 1, is how much of its weight counts."""

    title: str
    severity: Severity
    strength: float
    statements: tuple[Statement, ...]
    entities: tuple[Entity, ...] = ()
    incidents: tuple[int, ...] = ()
    techniques: tuple[str, ...] = ()


def grade_strength(value: int, steps: Mapping[int, float]) -> float:
    """Return the strength of the highest step that `value` reaches, 0 below the first."""
    return max((strength for least, strength in steps.items() if value >= least), default=0.0)
