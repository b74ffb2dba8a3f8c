"""Findings of `tocsin doctor`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """Severity of a finding."""

    OK = "ok"
    WARNING = "warning"
    """Something will fail, or fails in some cases."""
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
        """Add the result of a check that passed."""
        self._findings.append(Finding(self.name, Severity.OK, found))

    def __iter__(self) -> Iterator[Finding]:
        """Yield the findings, the most severe first."""
        order = list(reversed(Severity))
        return iter(sorted(self._findings, key=lambda finding: order.index(finding.severity)))
