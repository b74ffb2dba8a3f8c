"""Results of `tocsin check`, each printed as soon as it is known."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from tocsin.cli.marks import Mark
from tocsin.cli.output import print_json, print_marked
from tocsin.errors import ConfigurationProblem
from tocsin.registry import KeyLines

_PREFIXES = {"hint": "hint: ", "warning": "warning: "}
_MARKS = {"ok": Mark.GOOD, "hint": None, "warning": Mark.WARNING, "problem": Mark.BAD}


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One result of a check."""

    subject: str
    """The setting, the table of plugins.toml or the part of the service that was checked."""
    result: str
    """`ok`, `hint`, `warning` or `problem`."""
    detail: str
    file: str | None
    line: int | None
    """Where the subject is in plugins.toml."""


class CheckReport:
    """Collects results, and prints each immediately, or all of them at the end as JSON."""

    def __init__(self, path: Path, *, as_json: bool = False) -> None:
        self._name = path.name
        self._lines = _read_lines(path)
        self._as_json = as_json
        self._results: list[CheckResult] = []

    @property
    def passed(self) -> bool:
        """Whether there is no problem."""
        return all(result.result != "problem" for result in self._results)

    def note(self, subject: str, detail: str) -> None:
        """Add the result of a check that passed."""
        self._add(subject, "ok", detail)

    def hint(self, subject: str, detail: str, *, names_line: bool = False) -> None:
        """Add a hint."""
        self._add(subject, "hint", detail, names_line=names_line)

    def warn(self, subject: str, detail: str) -> None:
        """Add a warning."""
        self._add(subject, "warning", detail)

    def fail(self, subject: str, detail: str, *, names_line: bool = False) -> None:
        """Add a problem; `names_line` if it is a mistake in plugins.toml."""
        self._add(subject, "problem", detail, names_line=names_line)

    def add_problem(self, problem: ConfigurationProblem) -> None:
        """Add a problem of the configuration."""
        detail = "; ".join(filter(None, (problem.found, problem.expected)))
        if problem.file == self._name and problem.key:
            self.fail(problem.key, detail, names_line=True)
        else:
            self.fail(": ".join(filter(None, (problem.file, problem.key))), detail)

    def finish(self) -> None:
        """Print the results as JSON, unless they were printed one by one."""
        if self._as_json:
            results = [asdict(result) for result in self._results]
            print_json({"passed": self.passed, "results": results})

    def _add(self, subject: str, result: str, detail: str, *, names_line: bool = False) -> None:
        line = self._lines.find(subject) if self._lines else None
        name = None if line is None else self._name
        self._results.append(CheckResult(subject, result, detail, name, line))
        if not self._as_json:
            place = f"{name}:{line}: " if names_line and line is not None else ""
            text = f"{place}{subject}: {_PREFIXES.get(result, '')}{detail}"
            file = sys.stderr if result in {"warning", "problem"} else sys.stdout
            print_marked(_MARKS[result], text, file=file)


def _read_lines(path: Path) -> KeyLines | None:
    """Return the lines of the keys; None if the file is unreadable, which another check reports."""
    try:
        return KeyLines(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, IndexError):
        return None
