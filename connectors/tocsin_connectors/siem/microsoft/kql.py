"""Queries in the Kusto Query Language, in which values are always escaped literals.

Neither API takes query parameters, so values are string literals in the query:
https://learn.microsoft.com/kusto/query/scalar-data-types/string. The grammar lists the escapes:
https://github.com/microsoft/Kusto-Query-Language/blob/master/grammar/KqlTokens.g4.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from tocsin import Entity, Window
from tocsin_connectors.siem.microsoft.tables import LogColumn, LogTable

AT, FROM, RECORD = "EventTime", "EventTable", "EventRecord"
"""Columns of the result: time, table and the full row."""
_ESCAPED = {'"': r"\"", "\\": r"\\", "\n": r"\n", "\r": r"\r", "\t": r"\t"}


def quote_text(text: str) -> str:
    """Return a text as a string literal. Unprintable characters are escaped as well."""
    return f'"{"".join(map(_escape_character, text))}"'


def format_time(at: datetime) -> str:
    """Format a time for Microsoft's APIs, in UTC."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def format_second(at: datetime) -> str:
    """Format a time for Microsoft's APIs in whole seconds, in UTC."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_interval(window: Window) -> str:
    """Format a window as an ISO 8601 interval, which both APIs take beside the query."""
    return f"{format_time(window.start)}/{format_time(window.end)}"


def build_search_query(
    tables: Iterable[LogTable], time: str, entity: Entity, window: Window, limit: int
) -> str:
    """Return the query for the latest rows of tables that name an entity.

    It is empty if no table can. `time` is the time column. `union isfuzzy=true` skips tables that
    the customer does not have, and `column_ifexists` skips columns.
    """
    legs = [leg for table in tables if (leg := _build_table_query(table, time, entity))]
    if not legs:
        return ""
    return "\n".join(
        [
            f"let wanted = {quote_text(entity.value)};",
            f"let since = datetime({format_time(window.start)});",
            f"let until = datetime({format_time(window.end)});",
            "union isfuzzy=true",
            ",\n".join(legs),
            f"| top {limit:d} by {AT} desc",
        ]
    )


def _build_table_query(table: LogTable, time: str, entity: Entity) -> str | None:
    conditions = [
        f"{_build_column_expression(column)} =~ wanted"
        for column in table.columns.get(entity.kind, ())
    ]
    conditions += [
        f"{_build_column_expression(column)} has wanted"
        for column in table.mentions.get(entity.kind, ())
    ]
    if not conditions:
        return None
    return (
        f"({table.name} | where {time} >= since and {time} < until"
        f" | where {' or '.join(conditions)}"
        f" | project {AT} = {time}, {FROM} = {quote_text(table.name)}, {RECORD} = pack_all(true))"
    )


def _build_column_expression(column: LogColumn) -> str:
    """Return the compared expression: a column, or the two columns of an account joined."""
    if isinstance(column, str):
        return f'column_ifexists({quote_text(column)}, "")'
    domain, name = map(_build_column_expression, column)
    whole = f"strcat({domain}, {quote_text(chr(92))}, {name})"
    return f"iff(isempty({domain}), {name}, {whole})"


def _escape_character(character: str) -> str:
    if character in _ESCAPED:
        return _ESCAPED[character]
    if character.isprintable():
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
