"""Write-back to offenses: notes and status."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote_plus

from tocsin import IncidentStatus, Misconfigured, Refused
from tocsin_connectors.siem.idempotency_marker import add_marker, has_marker
from tocsin_connectors.siem.qradar.client import OFFENSES, OffenseClient, QRadarClient, QRadarRecord
from tocsin_connectors.siem.qradar.mapping import parse_status
from tocsin_connectors.siem.records import text

_NOTES_PER_REQUEST = 50
MAX_NOTE_LENGTH = 1_900
"""Notes have 2,000 characters at most, including the marker; counted URL-encoded.

https://www.ibm.com/docs/en/qsip/7.5?topic=actions-closing-offenses
"""


class QRadarWriteBack:
    """Writes notes and statuses to the offenses of one console."""

    def __init__(
        self, console: QRadarClient, offenses: OffenseClient, closing_reason: int | None
    ) -> None:
        """Store the dependencies. Performs no I/O."""
        self._console = console
        self._offenses = offenses
        self._closing_reason = closing_reason

    async def comment(self, identifier: str, words: str, key: str) -> None:
        """Write a comment as one or more notes, unless they exist.

        Notes have no keys, so each ends with a marker of its key.
        """
        offense = await self._existing(identifier)
        path = f"{OFFENSES}/{offense['id']}/notes"
        notes = await self._console.all(path, _NOTES_PER_REQUEST, fields="note_text")
        written = [text(note, "note_text") or "" for note in notes]
        parts = list(split_note(words))
        for index, part in enumerate(parts, 1):
            part_key = key if len(parts) == 1 else f"{key} {index}/{len(parts)}"
            if not has_marker(part_key, written):
                await self._console.request("POST", path, note_text=add_marker(part, part_key))

    async def set_status(self, identifier: str, status: IncidentStatus) -> None:
        """Set the status of an offense, unless it has that status already.

        Active offenses are marked for follow-up. Raises `Refused` for a closed offense, which
        cannot be reopened, and `Misconfigured` if there is no closing reason.
        """
        offense = await self._existing(identifier)
        path, current = f"{OFFENSES}/{offense['id']}", parse_status(offense)
        if current is status:
            return
        if status is IncidentStatus.CLOSED:
            await self._change(path, status="CLOSED", closing_reason_id=self._reason())
        elif current is IncidentStatus.CLOSED:
            raise Refused(f"the offense {identifier} is closed and cannot be reopened")
        else:
            follows = str(status is IncidentStatus.ACTIVE).lower()
            reopened = None if text(offense, "status") == "OPEN" else "OPEN"
            await self._change(path, status=reopened, follow_up=follows)

    async def _change(self, path: str, **query: Any) -> None:
        await self._console.request("POST", path, fields="id", **query)

    def _reason(self) -> int:
        if self._closing_reason is None:
            raise Misconfigured(
                "set `closing_reason_id`: QRadar requires a reason to close an offense"
            )
        return self._closing_reason

    async def _existing(self, identifier: str) -> QRadarRecord:
        """Return the current offense. Raises `Refused` if it does not exist."""
        found = await self._offenses.one(identifier)
        if found is None:
            raise Refused(f"the offense {identifier} does not exist")
        return found


def split_note(text: str) -> Iterator[str]:
    """Split a text into parts that fit into notes, between lines if possible."""
    part = ""
    for line in text.splitlines(keepends=True):
        for piece in _split_line(line):
            if part and _encoded_length(part + piece) > MAX_NOTE_LENGTH:
                yield part.rstrip("\n")
                part = ""
            part += piece
    yield part


def _split_line(line: str) -> Iterator[str]:
    """Split a line into pieces that are short enough, whatever its characters."""
    step = MAX_NOTE_LENGTH // len(quote_plus("\N{GRINNING FACE}"))
    if _encoded_length(line) <= MAX_NOTE_LENGTH:
        yield line
        return
    yield from (line[start : start + step] for start in range(0, len(line), step))


def _encoded_length(text: str) -> int:
    return len(quote_plus(text))
