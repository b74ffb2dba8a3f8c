"""Findings of `tocsin doctor`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How much a finding matters."""

    OK = "ok"
    WARNING = "warning"
    """Something will go wrong, or goes wrong in some cases."""
    PROBLEM = "problem"
    """Something does not work."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One result of an examination."""

    area: str
    severity: Severity
    found: str
    remedy: str | None = None


class Area:
    """Collects the findings of one area."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._findings: list[Finding] = []

    def warn(self, found: str, remedy: str) -> None:
        """Add a warning."""
        self._findings.append(Finding(self.name, Severity.WARNING, found, remedy))

    def fail(self, found: str, remedy: str) -> None:
        """Add a problem."""
        self._findings.append(Finding(self.name, Severity.PROBLEM, found, remedy))

    def note(self, found: str) -> None:
        """Add a fact that is as it should be."""
        self._findings.append(Finding(self.name, Severity.OK, found))

    def __iter__(self) -> Iterator[Finding]:
        """Yield the findings, the gravest first."""
        order = list(reversed(Severity))
        return iter(sorted(self._findings, key=lambda finding: order.index(finding.severity)))
