"""Output of commands: tables, tab-separated lines or JSON.

All output passes through `neutralize`, because any text can come from a SIEM or a receiver.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from shutil import get_terminal_size
from typing import Annotated, Any, TextIO

import orjson
import typer

from tocsin.cli.marks import Mark, colorize, has_colors
from tocsin.terminal import neutralize

AsJson = Annotated[bool, typer.Option("--json", help="Print the output as JSON.")]
Wide = Annotated[bool, typer.Option("--wide", help="Show all columns and complete values.")]


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns of a list; the first column of a table identifies the record."""

    every: tuple[str, ...]
    """Columns of a line, and of a table with `--wide`."""
    brief: tuple[str, ...] = ()
    """Columns of a table, as many as fit 80 characters; all of them if empty."""


def print_text(
    *values: object, sep: str = " ", end: str = "\n", file: TextIO | None = None
) -> None:
    """Print values, without characters that could control or mislead a terminal."""
    print(neutralize(sep.join(map(str, values))), end=end, file=file)


def print_line(text: object, *, file: TextIO | None = None) -> None:
    """Print text from a SIEM or a receiver on one line, so that it cannot look like two lines."""
    print_text(to_line(text), file=file)


def print_marked(mark: Mark | None, text: object, *, file: TextIO | None = None) -> None:
    """Print a line; on a terminal, with the mark and in its color."""
    out = file or sys.stdout
    line = neutralize(to_line(text))
    if out.isatty():
        line = f"{mark.value if mark else ' '} {line}"
    print(colorize(line, mark) if has_colors(out) else line, file=out)


def print_progress(text: str, *, end: str = "") -> None:
    """Replace the last line of a terminal on standard error; prints nothing elsewhere."""
    if sys.stderr.isatty():
        print(f"\r{neutralize(text)}", end=end, file=sys.stderr, flush=True)


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    print_text(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())


def print_value(name: str, value: object, *, as_json: bool) -> None:
    """Print one value alone; as JSON, an object with its name."""
    if as_json:
        print_json({name: value})
    else:
        print_text(value)


def print_records(
    records: Sequence[Mapping[str, Any]], columns: Columns, *, as_json: bool, wide: bool = False
) -> None:
    """Print columns of a list: a table on a terminal, and tab-separated lines elsewhere.

    As JSON, prints the complete records.
    """
    if as_json:
        print_json(records)
        return
    rows = [_choose_columns(record, columns.every) for record in records]
    if sys.stdout.isatty():
        _print_table(rows, columns, wide=wide)
    else:
        _print_lines(rows)


def print_record(record: Mapping[str, Any], columns: Sequence[str], *, as_json: bool) -> None:
    """Print a record: a line for each member on a terminal, one tab-separated line elsewhere.

    As JSON, prints a list that contains only the complete record.
    """
    if as_json:
        print_json([record])
        return
    row = _choose_columns(record, columns)
    if sys.stdout.isatty():
        _print_members(row)
    else:
        _print_lines([row])


def print_tree(
    nodes: Sequence[tuple[int, Mapping[str, Any]]], columns: Columns, *, wide: bool = False
) -> None:
    """Print records with their depth: a tree on a terminal, and tab-separated lines elsewhere."""
    if sys.stdout.isatty():
        from tocsin.cli.table import lay_out_tree

        width = None if wide else get_terminal_size().columns
        _print_laid_out(lay_out_tree(nodes, width=width, colors=has_colors(sys.stdout)))
    else:
        _print_lines([_choose_columns(record, columns.every) for _, record in nodes])


def to_line(value: Any) -> str:
    """Return a value as text of one line, empty for None."""
    text = "" if value is None else str(value)
    return " ".join(text.split())


def _choose_columns(record: Mapping[str, Any], columns: Sequence[str]) -> dict[str, Any]:
    return {name: _format_value(record[name]) for name in columns}


def _format_value(value: Any) -> Any:
    match value:
        case list():
            return ",".join(map(str, value))
        case dict():
            return orjson.dumps(value).decode()
        case _:
            return value


def _print_lines(rows: Sequence[Mapping[str, Any]]) -> None:
    for row in rows:
        print_text("\t".join(map(to_line, row.values())))


def _print_table(rows: Sequence[Mapping[str, Any]], columns: Columns, *, wide: bool) -> None:
    from tocsin.cli.table import lay_out_table

    if not rows:
        print_text("no results")
        return
    names = columns.every if wide or not columns.brief else columns.brief
    width = None if wide else get_terminal_size().columns
    _print_laid_out(lay_out_table(rows, names, width=width, colors=has_colors(sys.stdout)))


def _print_members(row: Mapping[str, Any]) -> None:
    from tocsin.cli.table import lay_out_record

    width = get_terminal_size().columns
    _print_laid_out(lay_out_record(row, row, width=width, colors=has_colors(sys.stdout)))


def _print_laid_out(lines: Iterable[str]) -> None:
    """Print lines whose values were neutralized before they got colors."""
    for line in lines:
        print(line)
