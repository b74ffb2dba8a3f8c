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
"""A note has 2,000 characters at most, of which the mark takes some; so many bytes of an address.

https://www.ibm.com/docs/en/qsip/7.5?topic=actions-closing-offenses
"""


class QRadarWriteBack:
    """Writes to the offenses of one console."""

    def __init__(
        self, console: QRadarClient, offenses: OffenseClient, closing_reason: int | None
    ) -> None:
        """Keep what is needed; do no I/O."""
        self._console = console
        self._offenses = offenses
        self._closing_reason = closing_reason

    async def comment(self, identifier: str, words: str, key: str) -> None:
        """Write a comment once for its key, as several notes where it is too long for one.

        Notes have no keys: so each ends with a mark, and one that ends with the mark of this key is
        looked for before.
        """
        offense = await self._existing(identifier)
        path = f"{OFFENSES}/{offense['id']}/notes"
        notes = await self._console.all(path, _NOTES_PER_REQUEST, fields="note_text")
        written = [text(note, "note_text") or "" for note in notes]
        parts = list(split_note(words))
        for place, part in enumerate(parts, 1):
            its_key = key if len(parts) == 1 else f"{key} {place}/{len(parts)}"
            if not has_marker(its_key, written):
                await self._console.request("POST", path, note_text=add_marker(part, its_key))

    async def set_status(self, identifier: str, status: IncidentStatus) -> None:
        """Have an offense stand so; an active one is marked for follow-up.

        One that stands there already is left alone. Raises `Refused` for one that is closed, which
        never opens again, and `Misconfigured` where it is to be closed and there is no reason.
        """
        offense = await self._existing(identifier)
        path, stands = f"{OFFENSES}/{offense['id']}", parse_status(offense)
        if stands is status:
            return
        if status is IncidentStatus.CLOSED:
            await self._change(path, status="CLOSED", closing_reason_id=self._reason())
        elif stands is IncidentStatus.CLOSED:
            raise Refused(f"the offense {identifier} is closed, and cannot be opened again")
        else:
            follows = str(status is IncidentStatus.ACTIVE).lower()
            reopened = None if text(offense, "status") == "OPEN" else "OPEN"
            await self._change(path, status=reopened, follow_up=follows)

    async def _change(self, path: str, **query: Any) -> None:
        await self._console.request("POST", path, fields="id", **query)

    def _reason(self) -> int:
        if self._closing_reason is None:
            raise Misconfigured("set `closing_reason_id`: QRadar closes nothing without a reason")
        return self._closing_reason

    async def _existing(self, identifier: str) -> QRadarRecord:
        """Return the offense as it is now; `Refused` where there is none."""
        found = await self._offenses.one(identifier)
        if found is None:
            raise Refused(f"there is no offense {identifier}")
        return found


def split_note(words: str) -> Iterator[str]:
    """Yield a text in parts of which none is too long for one note, cut between lines if it can."""
    part = ""
    for line in words.splitlines(keepends=True):
        for piece in _split_line(line):
            if part and _encoded_length(part + piece) > MAX_NOTE_LENGTH:
                yield part.rstrip("\n")
                part = ""
            part += piece
    yield part


def _split_line(line: str) -> Iterator[str]:
    """Yield a line in pieces that are short enough, whatever characters it has."""
    step = MAX_NOTE_LENGTH // len(quote_plus("\N{GRINNING FACE}"))
    if _encoded_length(line) <= MAX_NOTE_LENGTH:
        yield line
        return
    yield from (line[start : start + step] for start in range(0, len(line), step))


def _encoded_length(words: str) -> int:
    return len(quote_plus(words))
