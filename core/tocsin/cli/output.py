"""Output of commands: tables, tab-separated lines or JSON.

All of it passes through `print_text`, since any text may come from a SIEM or a receiver.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TextIO

import orjson
import typer

from tocsin.terminal import neutralize

_MOST_COLUMNS = 9
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def print_text(
    *values: object, sep: str = " ", end: str = "\n", file: TextIO | None = None
) -> None:
    """Print values as `print` does, without what could control or mislead a terminal."""
    print(neutralize(sep.join(map(str, values))), end=end, file=file)


def print_line(text: object, *, file: TextIO | None = None) -> None:
    """Print text of a SIEM or a receiver on one line, so that it cannot look like two."""
    print_text(to_line(text), file=file)


def print_progress(text: str, *, end: str = "") -> None:
    """Replace the last line of a terminal on standard error; prints nothing elsewhere."""
    if sys.stderr.isatty():
        print(f"\r{neutralize(text)}", end=end, file=sys.stderr, flush=True)


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    print_text(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())


def print_records(records: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
    """Print records that all have the same members.

    Prints a table on a terminal, and tab-separated lines elsewhere.
    """
    if as_json:
        print_json(records)
    elif sys.stdout.isatty():
        _print_table(records)
    else:
        for record in records:
            print_text("\t".join(map(to_line, record.values())))


def to_line(value: Any) -> str:
    """Return a value as text of one line, empty for None."""
    text = "" if value is None else str(value)
    return " ".join(text.split())


def _print_table(records: Sequence[Mapping[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if not records:
        print_text("no results")
        return
    if len(records) == 1 and len(records[0]) > _MOST_COLUMNS:
        _print_members(records[0])
        return
    table = Table(box=None, pad_edge=False)
    for place, name in enumerate(records[0]):
        # The first column identifies the record, and is not wrapped so that it can be copied
        table.add_column(name.replace("_", " "), overflow="fold", no_wrap=place == 0)
    for record in records:  # as text, which has no markup and no names of emoji
        table.add_row(*(Text(neutralize(to_line(value))) for value in record.values()))
    Console().print(table)


def _print_members(record: Mapping[str, Any]) -> None:
    """Print a wide record with one line for each member."""
    width = max(map(len, record))
    for name, value in record.items():
        print_text(f"{name.replace('_', ' '):{width}}  {to_line(value)}")
