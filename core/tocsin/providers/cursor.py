"""Where the reading of a stream by windows stands; frozen, and JSON between two reads."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Self

import orjson
from pydantic import AwareDatetime, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked

from tocsin.errors import Refused
from tocsin.model import Json, Window

VERSION = 1
MAX_SEEN = 2_000
"""So many records are remembered; what is forgotten is stored again, which changes nothing."""
SECOND = timedelta(seconds=1)


def floor_to_second(moment: datetime) -> datetime:
    """Return the second in which `moment` lies: vendors cut bounds at precisions of their own."""
    return moment.astimezone(UTC).replace(microsecond=0)


def ceil_to_second(moment: datetime) -> datetime:
    """Return the first whole second that is not before `moment`."""
    second = floor_to_second(moment)
    return second if second == moment else second + SECOND


def compute_digest(record: Json) -> str:
    """Return what tells a record from any other, and from any other version of itself."""
    content = orjson.dumps(record, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(content).hexdigest()[:24]


@dataclass(frozen=True, slots=True)
class WindowCursor:
    """Where the reading stands. `window` and `token` are those of a window that is being read."""

    watermark: datetime
    """Whatever changed before is stored."""
    window: Window | None = None
    token: Json = None
    pages: int = 0
    """How many pages of the window were read."""
    floor: datetime | None = None
    """Nothing before is asked for again: what broke there would break it again."""
    seen: Mapping[str, int] = field(default_factory=dict)
    """The digests of the records that the next window will bring again, and when they changed."""

    @classmethod
    def first(cls, start: datetime) -> Self:
        """Return where to begin so that nothing that changed since `start` is left out."""
        return cls(floor_to_second(start))

    @classmethod
    def exactly(cls, start: datetime) -> Self:
        """Return where to begin so that nothing is asked for that changed before `start`."""
        return cls(floor_to_second(start), floor=floor_to_second(start))

    def towards(self, end: datetime, overlap: timedelta, longest: timedelta | None) -> Self:
        """Return the cursor with the window to read next; with none where all up to `end` is.

        Windows may be as long as there is time, where `longest` is None.
        """
        if self.window is not None or end <= self.watermark:
            return self
        start = max(self.watermark - overlap, self.floor or self.watermark - overlap)
        until = end if longest is None else min(end, self.watermark + max(longest, SECOND))
        return replace(self, window=Window(start, floor_to_second(until)), token=None, pages=0)

    def restarted(self) -> Self:
        """Return the cursor at the beginning of its window."""
        return replace(self, token=None, pages=0)

    def turned(self, token: Json) -> Self:
        """Return the cursor at the next page of its window."""
        return replace(self, token=token, pages=self.pages + 1)

    def remembering(self, brought: Mapping[str, int]) -> Self:
        """Return the cursor that knows these records as well, the latest if they are too many."""
        seen = {**self.seen, **brought}
        return replace(self, seen=dict(list(seen.items())[-MAX_SEEN:])) if brought else self

    def finished(self, reached: datetime, kept: timedelta) -> Self:
        """Return the cursor after its window, of which all up to `reached` is stored."""
        watermark = max(self.watermark, reached)
        oldest = (watermark - kept).timestamp()
        recent = sorted(
            (item for item in self.seen.items() if item[1] >= oldest), key=lambda it: it[1]
        )
        return replace(self, watermark=watermark, window=None, token=None, seen=dict(recent))

    def rewound(self, end: datetime) -> Self:
        """Return the cursor where a clock that was ahead has been set back to `end`."""
        return replace(self, watermark=end, floor=None, window=None, token=None)

    def giving_up(self, end: datetime) -> Self:
        """Return the cursor after a stretch that is given up."""
        reached = max(self.watermark, end)
        return replace(self, watermark=reached, floor=end, window=None, token=None)

    def encode(self) -> dict[str, Any]:
        """Return the position that `decode` turns back into this."""
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
    """Return the cursor that `encode` made the position of.

    Raises `Refused` for a position that this version did not write: to start anew instead would
    bring everything a second time.
    """
    members = dict(position)
    if (version := members.pop("version", None)) != VERSION:
        raise Refused(f"the stored position has version {version!r}, not {VERSION}")
    try:
        stored = _STORED.validate_python(members)
    except ValidationError as error:
        words = "this version cannot read the position that was stored, so it is left as it is"
        raise Refused(f"{words}: {error.errors(include_url=False, include_input=False)}") from error
    window = Window(*stored.window) if stored.window else None
    return WindowCursor(
        stored.watermark, window, stored.token, stored.pages, stored.floor, stored.seen
    )
