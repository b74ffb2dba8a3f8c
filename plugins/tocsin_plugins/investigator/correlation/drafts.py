"""Finding drafts, and their distance from the subject of the question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tocsin import Entity, Severity, Statement
from tocsin_plugins.investigator.case import CaseFile
from tocsin_plugins.investigator.roles import find_subjects


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingDraft:
    """A finding of a rule; `strength`, from 0 to 1, is the share of its weight that counts."""

    title: str
    severity: Severity
    strength: float
    statements: tuple[Statement, ...]
    entities: tuple[Entity, ...] = ()
    incidents: tuple[int, ...] = ()
    techniques: tuple[str, ...] = ()


def grade_strength(value: int, steps: Mapping[int, float]) -> float:
    """Return the strength of the highest level that `value` reaches, 0 below the first."""
    return max((strength for least, strength in steps.items() if value >= least), default=0.0)


@dataclass(frozen=True, slots=True)
class CaseFocus:
    """The focus of a query; everything if it names nothing."""

    is_everything: bool
    incidents: frozenset[int]
    subjects: frozenset[Entity]

    @classmethod
    def of(cls, case: CaseFile) -> CaseFocus:
        """Return the focus of a case."""
        numbers = frozenset(record.number for record in case.in_focus)
        return cls(not case.scope.is_specific, numbers, find_subjects(case))

    def is_near(self, found: FindingDraft) -> bool:
        """Return whether a finding is outside the focus.

        A finding is inside if it has an incident in focus, a named entity, or the origin of an
        incident in focus. A host that two external origins share does not relate them.
        """
        if self.is_everything or self.incidents & set(found.incidents):
            return False
        return bool(found.entities or found.incidents) and not self.subjects & set(found.entities)
