"""Recorder of the statements of a SQLite database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import event

from tocsin.store import Database


@contextmanager
def noted_statements(database: Database) -> Iterator[list[str]]:
    """Return the list that every statement is added to."""
    statements: list[str] = []

    def note(_connection, _cursor, statement, *_rest) -> None:
        statements.append(statement)

    engine = database._engine
    event.listen(engine, "before_cursor_execute", note)
    try:
        yield statements
    finally:
        event.remove(engine, "before_cursor_execute", note)
