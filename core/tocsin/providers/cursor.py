"""Cursor of a windowed read: immutable, and stored as JSON between reads."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from operator import itemgetter
from typing import Any, Self

import orjson
from pydantic import AwareDatetime, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked

from tocsin.errors import Refused
from tocsin.model import Json, Window

VERSION = 1
MAX_SEEN = 2_000
"""How many records to remember; storing a forgotten one again changes nothing."""
SECOND = timedelta(seconds=1)


def floor_to_second(moment: datetime) -> datetime:
    """Return a time cut to whole seconds, since the precision of vendors differs."""
    return moment.astimezone(UTC).replace(microsecond=0)


def ceil_to_second(moment: datetime) -> datetime:
    """Return a time rounded up to whole seconds."""
    second = floor_to_second(moment)
    return second if second == moment else second + SECOND


def compute_digest(record: Json) -> str:
    """Return a digest that identifies a record and its version."""
    content = orjson.dumps(record, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(content).hexdigest()[:24]


@dataclass(frozen=True, slots=True)
class WindowCursor:
    """Progress of a read; `window` and `token` belong to the window that is being read."""

    watermark: datetime
    """All changes before this time are stored."""
    window: Window | None = None
    token: Json = None
    pages: int = 0
    """How many pages of the window have been read."""
    floor: datetime | None = None
    """The earliest time to query again, because records before this time fail."""
    seen: Mapping[str, int] = field(default_factory=dict)
    """The digests and change times of the records that overlap the next window."""

    @classmethod
    def exactly(cls, start: datetime) -> Self:
        """Return a cursor that excludes all changes before `start`."""
        return cls(floor_to_second(start), floor=floor_to_second(start))

    def towards(self, end: datetime, overlap: timedelta, longest: timedelta | None) -> Self:
        """Return the cursor with the next window, without one where `end` is reached.

        Windows are unlimited where `longest` is None.
        """
        if self.window is not None or end <= self.watermark:
            return self
        start = max(self.watermark - overlap, self.floor or self.watermark - overlap)
        until = end if longest is None else min(end, self.watermark + max(longest, SECOND))
        return replace(self, window=Window(start, floor_to_second(until)), token=None, pages=0)

    def restarted(self) -> Self:
        """Return the cursor at the start of its window."""
        return replace(self, token=None, pages=0)

    def turned(self, token: Json) -> Self:
        """Return the cursor at the next page of its window."""
        return replace(self, token=token, pages=self.pages + 1)

    def remembering(self, brought: Mapping[str, int]) -> Self:
        """Return the cursor with these records remembered, limited to the latest."""
        if not brought:
            return self
        seen = {**self.seen, **brought}
        return replace(self, seen=dict(islice(seen.items(), max(0, len(seen) - MAX_SEEN), None)))

    def finished(self, reached: datetime, kept: timedelta) -> Self:
        """Return the cursor after its window, stored up to `reached`."""
        watermark = max(self.watermark, reached)
        oldest = (watermark - kept).timestamp()
        recent = sorted(
            (item for item in self.seen.items() if item[1] >= oldest), key=itemgetter(1)
        )
        return replace(self, watermark=watermark, window=None, token=None, seen=dict(recent))

    def rewound(self, end: datetime) -> Self:
        """Return the cursor moved back to `end`, after a clock that was ahead was corrected."""
        return replace(self, watermark=end, floor=None, window=None, token=None)

    def giving_up(self, end: datetime) -> Self:
        """Return the cursor after a lost interval."""
        reached = max(self.watermark, end)
        return replace(self, watermark=reached, floor=end, window=None, token=None)

    def encode(self) -> dict[str, Any]:
        """Return the stored position, the inverse of `decode_cursor`."""
        window = self.window
        return {
            "version": VERSION,
            "watermark": self.watermark.isoformat(),
            "window": None
            if window is None
            else [window.start.isoformat(), window.end.isoformat()],
            "token": self.token,
            "pages": self.pages,
            "floor": self.floor.isoformat() if self.floor else None,
            "seen": dict(self.seen),
        }


@checked(frozen=True, slots=True)
class _StoredCursor:
    watermark: AwareDatetime
    window: tuple[AwareDatetime, AwareDatetime] | None
    token: Any
    floor: AwareDatetime | None
    seen: dict[str, int]
    pages: int = 0


_STORED = TypeAdapter(_StoredCursor)


def decode_cursor(position: Mapping[str, Any]) -> WindowCursor:
    """Decode a stored position.

    Raises `Refused` for a position of another version, because starting over would read everything
    twice.
    """
    members = dict(position)
    if (version := members.pop("version", None)) != VERSION:
        raise Refused(f"the stored position has version {version!r}, not {VERSION}")
    try:
        stored = _STORED.validate_python(members)
    except ValidationError as error:
        message = "this version of Tocsin cannot read the stored position; it stays unchanged"
        raise Refused(
            f"{message}: {error.errors(include_url=False, include_input=False)}"
        ) from error
    window = Window(*stored.window) if stored.window else None
    return WindowCursor(
        stored.watermark, window, stored.token, stored.pages, stored.floor, stored.seen
    )
