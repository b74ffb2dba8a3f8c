"""Bounded phrases and blocks that state how much they omit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from tocsin.model import Entity, Statement
from tocsin.reports.outline import (
    Block,
    Cited,
    Items,
    Paragraph,
    Phrase,
    Table,
    TableColumn,
    Values,
)
from tocsin.reports.text_format import format_count, format_time

MAX_ROWS = 250  # rows of one table; the report's JSON has them all
_NAMED = 30  # of a list inside a line


def cite_statements(statements: Sequence[Statement]) -> Phrase:
    """Return sentences, each with its evidence."""
    shown = statements[:MAX_ROWS]
    return tuple(inline for each in shown for inline in (each.text, Cited(each.evidence)))


def list_values(entities: Sequence[Entity]) -> Phrase:
    """Return the values of entities."""
    shown = Values(tuple(entity.value for entity in entities[:_NAMED]))
    rest = len(entities) - _NAMED
    return (shown, f"and {rest:,} more") if rest > 0 else (shown,)


def join_words(words: Iterable[str]) -> str:
    """Return words as an inline list; `none` if there are none."""
    every = list(words)
    rest = len(every) - _NAMED
    shown = ", ".join(every[:_NAMED]) or "none"
    return f"{shown} and {rest:,} more" if rest > 0 else shown


def split_time(moment: datetime | None) -> Phrase:
    """Return a time that may wrap between day and hour; nothing for None."""
    return tuple(format_time(moment).split()) if moment else ()


def build_bullets(phrases: Sequence[Phrase]) -> tuple[Block, ...]:
    """Return a bulleted list; nothing if it is empty."""
    if not phrases:
        return ()
    return note_omitted((Items(tuple(phrases[:MAX_ROWS])),), len(phrases))


def build_table(
    caption: str,
    columns: tuple[TableColumn, ...],
    rows: tuple[tuple[Phrase, ...], ...],
    total: int,
) -> tuple[Block, ...]:
    """Return a table of the first of `total` rows; nothing if there are none."""
    return note_omitted((Table(caption, columns, rows),), total) if rows else ()


def note_omitted(blocks: tuple[Block, ...], total: int) -> tuple[Block, ...]:
    """Return the blocks, with a note on the number of rows left out."""
    if total <= MAX_ROWS:
        return blocks
    rest = format_count(total - MAX_ROWS, "more is", "more are")
    return (*blocks, Paragraph((f"{rest} in the JSON report.",)))
