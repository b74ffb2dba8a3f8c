"""Curves and labels of SVG drawings."""

from __future__ import annotations

from dataclasses import dataclass
from unicodedata import combining, east_asian_width


@dataclass(frozen=True, slots=True)
class EdgeCurve:
    """A cubic Bezier curve with the horizontal offsets of its control points."""

    begin: tuple[float, float]
    end: tuple[float, float]
    leaves: float
    arrives: float

    @property
    def path(self) -> str:
        """Path data for SVG."""
        (x, y), (to_x, to_y) = self.begin, self.end
        bends = f"{x + self.leaves:g},{y:g} {to_x + self.arrives:g},{to_y:g}"
        return f"M{x:g},{y:g} C{bends} {to_x:g},{to_y:g}"

    def at(self, part: float) -> tuple[float, float]:
        """Return the point at a fraction of the curve, from 0 to 1."""
        (x, y), (to_x, to_y), rest = self.begin, self.end, 1 - part
        out, back = x + self.leaves, to_x + self.arrives
        begin, first, second, end = rest**3, 3 * rest**2 * part, 3 * rest * part**2, part**3
        across = begin * x + first * out + second * back + end * to_x
        return round(across, 1), round((begin + first) * y + (second + end) * to_y, 1)


def shorten_middle(text: str, most: int) -> str:
    """Return `text` without its middle if it is wider than `most` letters."""
    if sum(map(_width, text)) <= most:
        return text
    head = _fitting(text, most // 2)
    tail = _fitting(text[::-1], most - most // 2 - 1)[::-1]
    return f"{head}…{tail}"


def _fitting(text: str, most: int) -> str:
    width = 0
    for position, letter in enumerate(text):
        width += _width(letter)
        if width > most:
            return text[:position]
    return text


def _width(letter: str) -> int:
    """Return the number of columns of a letter in a monospaced font."""
    return 0 if combining(letter) else 2 if east_asian_width(letter) in "WF" else 1
