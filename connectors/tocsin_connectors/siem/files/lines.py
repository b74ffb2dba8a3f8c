"""Lines of a stream, in bounded memory however long a line is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from tocsin_connectors.siem.files.position import KIB

MAX_LINE_LENGTH = 1024 * KIB
KEPT_LINE_LENGTH = 16 * KIB


class Line(NamedTuple):
    """Line without its newline, or a part of an overlong line."""

    start: int
    content: bytes
    """Only the beginning of an overlong line; empty for its remaining parts."""
    too_long: bool


class LineStream:
    """Lines of a stream. A new iteration continues where the last one stopped."""

    def __init__(
        self,
        chunks: Iterator[bytes],
        start: int,
        recent: bytes,
        *,
        in_long_line: bool,
        takes_partial: Callable[[], bool],
    ) -> None:
        self.end = start
        """End of the last line that was returned."""
        self.in_long_line = in_long_line
        """Whether `end` is inside a line, the remainder of which is skipped."""
        self._chunks = chunks
        self._takes_partial = takes_partial
        self._start = start
        self._recent = recent
        self._buffer = b""
        self._lines = self._split()

    def __iter__(self) -> Iterator[Line]:
        return self._lines

    @property
    def recent(self) -> bytes:
        """Last KiB before `end`."""
        end = self.end - self._start
        return (self._recent + self._buffer[max(0, end - KIB) : end])[-KIB:]

    @property
    def has_rest(self) -> bool:
        """Whether an incomplete line was read."""
        return self._start + len(self._buffer) > self.end

    def _split(self) -> Iterator[Line]:
        for chunk in self._chunks:
            self._buffer += chunk
            begin = 0
            while (newline := self._buffer.find(b"\n", begin)) >= 0:
                yield self._line(begin, newline, ended=True)
                begin = newline + 1
            if self.in_long_line or len(self._buffer) - begin > MAX_LINE_LENGTH:
                yield self._line(begin, len(self._buffer), ended=False)
            self._drop()
        if self._buffer and self._takes_partial():
            yield self._line(0, len(self._buffer), ended=False)

    def _line(self, begin: int, end: int, *, ended: bool) -> Line:
        is_rest, self.in_long_line = self.in_long_line, not ended
        self.end = self._start + end + ended
        too_long = end - begin > MAX_LINE_LENGTH and not is_rest
        kept = 0 if is_rest else KEPT_LINE_LENGTH if too_long else end - begin
        return Line(self._start + begin, self._buffer[begin : begin + kept], too_long)

    def _drop(self) -> None:
        recent, taken = self.recent, self.end - self._start
        self._recent, self._start, self._buffer = recent, self.end, self._buffer[taken:]
