"""Finding drafts, and their distance from the subject of the question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tocsin import Entity, Severity, Statement
from tocsin_plugins.investigator.case import Case


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


@dataclass(frozen=True, slots=True)
class CaseFocus:
    """What was asked about; all there is, where nothing was named."""

    is_everything: bool
    incidents: frozenset[int]
    subjects: frozenset[Entity]

    @classmethod
    def of(cls, case: Case) -> CaseFocus:
        """Return what a case is about."""
        numbers = frozenset(record.number for record in case.in_focus)
        return cls(not case.scope.is_specific, numbers, case.subjects)

    def is_near(self, found: FindingDraft) -> bool:
        """Return whether a finding is not about what was asked, but about what was found near it.

        It is about what was asked where it involves an incident asked about, an entity that is
        named, or the origin of an incident asked about. A host that two from outside have in
        common makes what one of them did no part of a question about the other.
        """
        if self.is_everything or self.incidents & set(found.incidents):
            return False
        return bool(found.entities or found.incidents) and not self.subjects & set(found.entities)
