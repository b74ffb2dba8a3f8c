"""Output of commands: tables, tab-separated lines or JSON."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import orjson
import typer

_MOST_COLUMNS = 9
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def print_records(records: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
    """Print records that all have the same members.

    Prints a table on a terminal, and tab-separated lines elsewhere.
    """
    if as_json:
        print(orjson.dumps(records, option=orjson.OPT_INDENT_2).decode())
    elif sys.stdout.isatty():
        _print_table(records)
    else:
        for record in records:
            print("\t".join(map(_one_line, record.values())))


def _one_line(value: Any) -> str:
    text = "" if value is None else str(value)
    return " ".join(text.split())


def _print_table(records: Sequence[Mapping[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    if not records:
        print("no results")
        return
    if len(records) == 1 and len(records[0]) > _MOST_COLUMNS:
        _print_members(records[0])
        return
    table = Table(box=None, pad_edge=False)
    for place, name in enumerate(records[0]):
        # The first column identifies the record, and is not wrapped so that it can be copied
        table.add_column(name.replace("_", " "), overflow="fold", no_wrap=place == 0)
    for record in records:
        table.add_row(*map(_escape, record.values()))
    Console().print(table)


def _print_members(record: Mapping[str, Any]) -> None:
    """Print a wide record with one line for each member."""
    width = max(map(len, record))
    for name, value in record.items():
        print(f"{name.replace('_', ' '):{width}}  {'' if value is None else value}")


def _escape(value: Any) -> str:
    from rich.markup import escape

    return escape("" if value is None else str(value))
