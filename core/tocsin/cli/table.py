"""Layout of records for a terminal: tables that fit its width, and single records."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from rich.cells import cell_len, chop_cells, set_cell_size

from tocsin.cli.marks import colorize, embolden, find_color, find_mark
from tocsin.cli.output import to_line
from tocsin.clock import SystemClock
from tocsin.terminal import neutralize

_GAP = 2
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|\+00:00)")
_WORD = re.compile(r"(\s*)(\S+)")
_NEAR = timedelta(days=180)
_PROSE = frozenset(
    {
        *("absent", "conclusion", "content", "detail", "details", "disabled_reason", "error"),
        *("problems", "reason", "response", "rule", "snippet", "summary", "title", "warnings"),
    }
)
"""Columns of sentences, which are wrapped; other columns are shortened in the middle."""


@dataclass(slots=True)
class _Column:
    """A column of a table while it is laid out."""

    name: str
    cells: list[str]
    is_marked: bool
    is_numeric: bool
    width: int
    least: int
    """The width below which numbers and times would be cut."""

    @property
    def heading(self) -> str:
        return self.name.replace("_", " ")


def lay_out_table(
    records: Sequence[Mapping[str, Any]],
    names: Iterable[str],
    *,
    width: int | None,
    colors: bool,
) -> list[str]:
    """Return the lines of a table of these members; without a width, the table is complete.

    With a width, the table omits columns without values, shortens times and names, and wraps
    sentences. It omits the last columns if the others would be too narrow.
    """
    columns = [_make_column(name, records, is_short=width is not None) for name in names]
    if width is not None:
        first, *others = columns
        columns = [first, *(column for column in others if any(column.cells))]
        _fit(columns, width)
    headings = [_pad(column, _shorten_end(column.heading, column.width)) for column in columns]
    title = (" " * _GAP).join(headings).rstrip()
    lines = [embolden(title) if colors else title]
    for row in range(len(records)):
        lines += _lay_out_row(columns, row, colors=colors, wraps=width is not None)
    return lines


def lay_out_record(
    record: Mapping[str, Any], names: Iterable[str], *, width: int, colors: bool
) -> list[str]:
    """Return one line for each member of a record, wrapped to the width."""
    shown = list(names)
    indent = max(len(name) for name in shown) + _GAP
    lines: list[str] = []
    for name in shown:
        cell = _to_cell(record[name])
        parts = wrap(_mark(name, cell), max(width - indent, 10)) or [""]
        heads = [name.replace("_", " ").ljust(indent), *(" " * indent for _ in parts[1:])]
        mark = find_color(name, cell) if colors else None
        lines += [
            f"{head}{colorize(part, mark)}".rstrip()
            for head, part in zip(heads, parts, strict=True)
        ]
    return lines


def lay_out_tree(
    nodes: Iterable[tuple[int, Mapping[str, Any]]], *, width: int | None, colors: bool
) -> list[str]:
    """Return the members of each record on wrapped lines, indented by the record's depth."""
    lines: list[str] = []
    for depth, record in nodes:
        indent, words = "  " * depth, []
        for name, value in record.items():
            cell = _to_cell(value)
            words.append(_mark(name, cell if width is None else shorten_time(cell)))
        text = "  ".join(filter(None, words))
        parts = [text] if width is None else wrap(text, max(width - len(indent) - 4, 20))
        if colors:
            parts[0] = _color_words(parts[0], record)
        lines += [f"{indent}{parts[0]}", *(f"{indent}    {part}" for part in parts[1:])]
    return lines


def _color_words(text: str, record: Mapping[str, Any]) -> str:
    for name, value in record.items():
        cell = _to_cell(value)
        if mark := find_mark(name, cell):
            marked = _mark(name, cell)
            text = text.replace(marked, colorize(marked, mark), 1)
    return text


def wrap(text: str, width: int) -> list[str]:
    """Return the text in lines of at most this many cells."""
    lines: list[str] = []
    for space, word in _WORD.findall(text):
        if lines and cell_len(lines[-1]) + len(space) + cell_len(word) <= width:
            lines[-1] += f"{space}{word}"
        else:
            lines += chop_cells(word, width)
    return lines


def shorten(text: str, width: int) -> str:
    """Return the text with an ellipsis in its middle if it is wider than this many cells."""
    if cell_len(text) <= width:
        return text
    head = set_cell_size(text, width - 1 - (width - 1) // 2).rstrip()
    tail = ""
    for character in reversed(text):
        if cell_len(character + tail) > (width - 1) // 2:
            break
        tail = character + tail
    return f"{head}…{tail.lstrip()}"


def shorten_time(text: str) -> str:
    """Return a time to the minute, with a year only if it is far: `11-21 05:33`."""
    if not _TIME.fullmatch(text):
        return text
    moment = datetime.fromisoformat(text).astimezone(UTC)
    is_near = abs(SystemClock().now() - moment) < _NEAR
    return f"{moment:%m-%d %H:%M}" if is_near else f"{moment:%Y-%m-%d}"


def _to_cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return neutralize(to_line(value))


def _make_column(name: str, records: Sequence[Mapping[str, Any]], *, is_short: bool) -> _Column:
    values = [record[name] for record in records]
    cells = [_to_cell(value) for value in values]
    if is_short:
        cells = [
            f"{value:.4g}" if isinstance(value, float) else shorten_time(cell)
            for value, cell in zip(values, cells, strict=True)
        ]
    marked = any(find_mark(name, cell) for cell in cells)
    if marked:
        cells = [_mark(name, cell) if find_mark(name, cell) else f"  {cell}" for cell in cells]
    given = [value for value in values if value is not None]
    is_numeric = bool(given) and all(isinstance(value, int | float) for value in given)
    width = max(map(cell_len, cells), default=0)
    is_rigid = is_numeric or any(map(_TIME.fullmatch, map(str, given)))
    column = _Column(name, cells, marked, is_numeric, 0, least=width if is_rigid else 0)
    column.width = max(width, cell_len(column.heading))
    return column


def _mark(name: str, cell: str) -> str:
    mark = find_mark(name, cell)
    return cell if mark is None else f"{mark.value} {cell}"


def _fit(columns: list[_Column], width: int) -> None:
    """Narrow the columns until they fit the width, and leave out the last ones if they cannot."""
    first = columns[0]
    is_prose = {column.name: column.name in _PROSE for column in columns}
    stages: tuple[tuple[Callable[[_Column], bool], int], ...] = (
        (lambda column: is_prose[column.name], 24),
        (lambda column: column is not first and not is_prose[column.name], 14),
        (lambda column: is_prose[column.name], 18),
        (lambda column: column is first, 22),
        (lambda column: column is not first, 10),
        (lambda column: column is first, 16),
    )
    natural = [min(column.width, width) for column in columns]
    while True:
        for column, own in zip(columns, natural, strict=False):
            column.width = own
        room = width - _GAP * (len(columns) - 1)
        for applies, least in stages:
            _narrow([column for column in columns if applies(column)], columns, room, least)
        if sum(column.width for column in columns) <= room or len(columns) == 1:
            return
        columns.pop()


def _narrow(chosen: Sequence[_Column], columns: Sequence[_Column], room: int, least: int) -> None:
    """Narrow the widest of the chosen columns, one cell at a time, down to the least width."""
    for _ in range(sum(column.width for column in columns) - room):
        able = [column for column in chosen if column.width > max(least, column.least)]
        if not able:
            return
        max(able, key=lambda column: column.width).width -= 1


def _lay_out_row(
    columns: Sequence[_Column], row: int, *, colors: bool, wraps: bool
) -> Iterator[str]:
    """Yield the lines of a record."""
    cells = [
        _split(column, column.cells[row]) if wraps else [column.cells[row]] for column in columns
    ]
    for line in range(max(map(len, cells))):
        parts = []
        for column, lines in zip(columns, cells, strict=True):
            text = _pad(column, lines[line] if line < len(lines) else "")
            word = column.cells[row][2:] if column.is_marked else column.cells[row]
            parts.append(colorize(text, find_color(column.name, word) if colors else None))
        yield (" " * _GAP).join(parts).rstrip()


def _split(column: _Column, cell: str) -> list[str]:
    """Return the lines of a cell."""
    if column.name in _PROSE:
        return wrap(cell, column.width) or [""]
    return [shorten(cell, column.width)]


def _pad(column: _Column, text: str) -> str:
    space = " " * (column.width - cell_len(text))
    return f"{space}{text}" if column.is_numeric else f"{text}{space}"


def _shorten_end(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"
