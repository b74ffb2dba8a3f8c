"""What of the files is not read, and why, as the ledger is told."""

from __future__ import annotations

from datetime import UTC, datetime

from tocsin import Covered
from tocsin_connectors.siem.files.lines import LineStream
from tocsin_connectors.siem.files.open_file import OpenFile
from tocsin_connectors.siem.files.position import FilePosition

_DAMAGED = "the compressed file is damaged or incomplete ({}): its rest cannot be read"
_TRUNCATED = (
    "the file was truncated or replaced and no copy of it was found:"
    " whatever was written after this byte and before that is lost, and how much is not known"
)
_VANISHED = "the file vanished before its rest was read, and no copy of it was found"
_OLD = "last written {}, longer ago than first_fetch allows"


def passed_over(known: FilePosition) -> Covered:
    """Return all of a file that is too old for a first read."""
    written = datetime.fromtimestamp(known.state.modified / 1e9, UTC)
    reason = _OLD.format(written.isoformat(timespec="seconds"))
    return Covered(source=known.state.path, start=0, end=known.offset, passed_over=reason)


def damaged(opened: OpenFile, lines: LineStream) -> Covered:
    """Return what follows in a compressed file whose content ends too early."""
    lost = _DAMAGED.format(opened.damage)
    return Covered(source=opened.state.path, start=lines.end, end=lines.end, lost=lost)


def gone(known: FilePosition, *, truncated: bool) -> Covered:
    """Return what was not read of a file that there is no more, as far as its length is known."""
    compressed = known.state.path.endswith(".gz")
    return Covered(
        source=known.state.path,
        start=known.offset,
        end=known.offset if compressed else max(known.offset, known.state.size),
        lost=_TRUNCATED if truncated else _VANISHED,
    )
