"""Whether a finding is about what was asked, or about what was found near it."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin import Entity
from tocsin_plugins.investigator.case import Case
from tocsin_plugins.investigator.correlating.found import FindingDraft


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
