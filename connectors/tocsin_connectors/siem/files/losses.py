"""Content of files that is not read, and the reasons, for the ledger."""

from __future__ import annotations

from datetime import UTC, datetime

from tocsin import Covered
from tocsin_connectors.siem.files.lines import LineStream
from tocsin_connectors.siem.files.open_file import OpenFile
from tocsin_connectors.siem.files.position import FilePosition

_DAMAGED = "the compressed file is damaged or incomplete ({}); the rest cannot be read"
_TRUNCATED = (
    "the file was truncated or replaced, and no copy of it was found:"
    " an unknown amount of data after this byte is lost"
)
_VANISHED = "the file disappeared before it was read to the end, and no copy of it was found"
_OLD = "last written {}, before the start of first_fetch"


def passed_over(known: FilePosition) -> Covered:
    """Report a file that is too old for a first read."""
    written = datetime.fromtimestamp(known.state.modified / 1e9, UTC)
    reason = _OLD.format(written.isoformat(timespec="seconds"))
    return Covered(source=known.state.path, start=0, end=known.offset, passed_over=reason)


def damaged(opened: OpenFile, lines: LineStream) -> Covered:
    """Report the unreadable rest of a compressed file."""
    lost = _DAMAGED.format(opened.damage)
    return Covered(source=opened.state.path, start=lines.end, end=lines.end, lost=lost)


def gone(known: FilePosition, *, truncated: bool) -> Covered:
    """Report the unread content of a file that no longer exists, as far as its size is known."""
    compressed = known.state.path.endswith(".gz")
    return Covered(
        source=known.state.path,
        start=known.offset,
        end=known.offset if compressed else max(known.offset, known.state.size),
        lost=_TRUNCATED if truncated else _VANISHED,
    )
