"""What every suite has: a provider, and what its SIEM can tell apart."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from tocsin.hookspecs import Provider
from tocsin.model import Incident, IncidentStatus, Severity
from tocsin.testing.conformance.lab import Harness
from tocsin.testing.siem import Case


class Conformance(ABC):
    """A suite of contract tests; derive from one of its kinds and say which provider is meant."""

    provider: ClassVar[type[Provider]]
    severities: ClassVar[Sequence[Severity]] = tuple(Severity)
    """The severities that the vendor tells apart."""
    statuses: ClassVar[Sequence[IncidentStatus]] = tuple(IncidentStatus)
    """The statuses that the vendor tells apart."""

    def external_id(self, case: Case) -> str:
        """Return the `external_id` that the provider gives a case: its id."""
        return case.id

    def is_version(self, incident: Incident, case: Case) -> bool:
        """Return whether an incident says what this version of a case says: by title and status."""
        return (incident.title, incident.status) == (case.title, case.status)

    def malformed(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return a record of which nothing can be understood but, perhaps, of what kind it is."""
        return {name: {"unexpected": value} for name, value in record.items()}

    @abstractmethod
    def harness(self) -> Harness:
        """Return where the provider is tried out."""
