"""Test harness for providers that follow files."""

from __future__ import annotations

import gzip
from abc import abstractmethod
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from tocsin.testing.conformance.harness import Conformance, Harness
from tocsin.testing.conformance.rules import RuleViolation
from tocsin.testing.siem import Case, LogEvent


class FileConformance(Conformance):
    """Base of the rules for providers that follow files."""

    file_name = "feed.json"
    """The name of the file that the program writes."""

    @abstractmethod
    def record(self, case: Case) -> dict[str, Any]:
        """Return a case as a record in the file's format."""

    def log_record(self, log_event: LogEvent) -> dict[str, Any]:
        """Return a log event as a record that is not an incident; required with `events`."""
        raise RuleViolation(f"cannot write {log_event.text!r}: override `log_record` in the suite")

    def settings(self, path: Path) -> Mapping[str, Any]:
        """Return the settings with which the provider follows the file at `path`."""
        return {"path": str(path)}

    def line(self, record: dict[str, Any]) -> bytes:
        """Return the line for a record in the file; by default, JSON."""
        return orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)

    def rotate(self, path: Path) -> Path:
        """Rotate the file like the program that writes it, and return the file's new path.

        By default, adds the suffix `.1`.
        """
        return path.rename(path.with_name(f"{path.name}.1"))

    def compress(self, path: Path) -> Path:
        """Compress a rotated file like the program that writes it, and return the file's new path.

        By default, uses gzip.
        """
        compressed = path.with_name(f"{path.name}.gz")
        compressed.write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
        return compressed

    def harness(self) -> FileHarness:
        """Return a harness for the provider."""
        return FileHarness(self)


class FileHarness(Harness):
    """One test run in a folder; its clock starts at the machine's time, which stamps the files."""

    def __init__(self, suite: FileConformance) -> None:
        super().__init__(suite, datetime.now(UTC))
        self._suite = suite
        self.path = self.folder / suite.file_name

    def settings(self) -> Mapping[str, Any]:
        """Return the settings of the provider."""
        return self._suite.settings(self.path)

    def render(self, case: Case) -> dict[str, Any]:
        """Return a case as a record in the file's format."""
        return self._suite.record(case)

    def keep(self, case: Case) -> Case:
        """Write a version of an incident."""
        kept = super().keep(case)
        self.write(self.line(kept))
        return kept

    def keep_log_event(self, log_event: LogEvent) -> LogEvent:
        """Write a log event."""
        kept = super().keep_log_event(log_event)
        record = self._suite.log_record(kept)
        self.write(self._suite.line(self._suite.malformed(record) if kept.malformed else record))
        return kept

    def line(self, case: Case) -> bytes:
        """Return the line of a case."""
        record = self.show(case)
        try:
            return self._suite.line(record)
        except orjson.JSONEncodeError:  # lone surrogates
            return self._suite.line(_escape(record)).replace(_MARK, b"\\ud83d")

    def write(self, content: bytes) -> None:
        """Append content to the file."""
        with self.path.open("ab") as file:
            file.write(content)

    async def arrive(self) -> None:
        """Read once everything written has settled."""
        self.clock.advance(minutes=2)
        await self.reader.read()


_MARK = b"HALF-A-CHARACTER"


def _escape(content: Any) -> Any:
    """Return a record with a mark in place of each lone surrogate."""
    match content:
        case str():
            return content.replace("\ud83d", _MARK.decode())
        case dict():
            return {key: _escape(value) for key, value in content.items()}
        case list():
            return [_escape(value) for value in content]
    return content
