"""Batches of parsed lines, each of the size of a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from tocsin import Covered, Incident, Page, Rejected, Window, parse_json
from tocsin_connectors.siem.files.lines import KEPT_LINE_LENGTH, MAX_LINE_LENGTH, Line, LineStream
from tocsin_connectors.siem.files.position import KIB

MAX_RECORDS = 1000
MAX_BYTES = 8 * 1024 * KIB
MAX_REASON_LENGTH = 300


class IncidentParser(Protocol):
    """Parser of records into incidents."""

    def to_incident(self, record: dict[str, Any]) -> Incident | None:
        """Return the record's incident, or None for other kinds of record.

        Raises ValueError with the reason if the record is invalid.
        """
        ...

    def explain_skip(self, record: dict[str, Any]) -> str | None:
        """Return why a record without an incident is skipped, to be reported once; else None."""
        ...

    def fold(self, incidents: list[Incident]) -> tuple[Incident, ...]:
        """Merge the incidents of one page that have the same `external_id`."""
        ...


class LineBatch:
    """Records of the next lines of one file, up to the size of a page."""

    def __init__(self, parser: IncidentParser, path: str, lines: LineStream) -> None:
        self._parser = parser
        self._path = path
        self._lines = lines
        self._start = lines.end
        self._records = 0
        self._incidents: list[Incident] = []
        self._rejected: list[Rejected] = []
        self._skipped: dict[str, None] = {}

    def fill(self) -> bool:
        """Read lines until the page is full, and return whether more may follow."""
        for line in self._lines:
            self._take(line)
            if self._is_full():
                return True
        return False

    def page(self, position: Mapping[str, Any], lost: Covered | None) -> Page | None:
        """Return the page, or None if it is empty."""
        covered = [] if lost is None else [lost]
        if self._lines.end > self._start:
            covered.insert(0, Covered(source=self._path, start=self._start, end=self._lines.end))
            covered += [
                Covered(
                    source=self._path, start=self._start, end=self._lines.end, passed_over=reason
                )
                for reason in self._skipped
            ]
        if not covered:
            return None
        return Page(
            next_position=position,
            incidents=self._parser.fold(self._incidents),
            rejected=tuple(self._rejected),
            covered=tuple(covered),
            records=self._records,
        )

    def _is_full(self) -> bool:
        kept = len(self._incidents) + len(self._rejected)
        return kept >= MAX_RECORDS or self._lines.end - self._start >= MAX_BYTES

    def _take(self, line: Line) -> None:
        if not line.content or line.content.isspace():
            return
        self._records += 1
        try:
            record = _parse_line(line)
            if incident := self._parser.to_incident(record):
                self._incidents.append(incident)
            elif reason := self._parser.explain_skip(record):
                self._skipped[reason] = None
        except ValueError as error:
            self._reject(line, str(error))
        except Exception as error:  # noqa: BLE001 - a bug in one record must not stop the feed
            self._reject(line, f"unexpected error in the parser: {error!r}")

    def _reject(self, line: Line, reason: str) -> None:
        self._rejected.append(
            Rejected(
                source=self._path,
                location=f"byte {line.start}",
                reason=reason[:MAX_REASON_LENGTH],
                content=line.content[:KEPT_LINE_LENGTH],
            )
        )


def _parse_line(line: Line) -> dict[str, Any]:
    if line.too_long:
        raise ValueError(f"the line is longer than {MAX_LINE_LENGTH} bytes")
    try:
        record = parse_json(line.content)
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from None
    if not isinstance(record, dict):
        raise ValueError("not a JSON object")  # noqa: TRY004 - the record is wrong, not the code
    return record


class WindowedParser:
    """Parser that wraps another one, and keeps only incidents from a window.

    Each record is kept or dropped by its own time, before incidents are merged. The result is
    therefore the same as if the records had been read live.
    """

    def __init__(self, parser: IncidentParser, window: Window) -> None:
        self._parser = parser
        self._window = window

    def to_incident(self, record: dict[str, Any]) -> Incident | None:
        """Return the record's incident if it is in the window, else None.

        Raises ValueError if the record is invalid, since its time is unknown.
        """
        incident = self._parser.to_incident(record)
        if incident is None or (incident.changed_at or incident.occurred_at) not in self._window:
            return None
        return incident

    def explain_skip(self, record: dict[str, Any]) -> str | None:  # noqa: ARG002 - see the reads
        """Return None: the reads report what is skipped."""
        return None

    def fold(self, incidents: list[Incident]) -> tuple[Incident, ...]:
        """Merge the incidents of one page as the other parser does."""
        return self._parser.fold(incidents)
