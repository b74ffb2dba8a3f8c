"""Queries in the Kusto Query Language, in which a value is never more than a value.

Neither API takes parameters beside a query, so values stand in it as string literals:
https://learn.microsoft.com/kusto/query/scalar-data-types/string. Which escapes there are is in the
grammar, https://github.com/microsoft/Kusto-Query-Language/blob/master/grammar/KqlTokens.g4.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from tocsin import Entity, Window
from tocsin_connectors.siem.microsoft.tables import LogColumn, LogTable

AT, FROM, RECORD = "EventTime", "EventTable", "EventRecord"
"""The columns of the result: when it was, which table has it, and all that the table has."""
_ESCAPED = {'"': r"\"", "\\": r"\\", "\n": r"\n", "\r": r"\r", "\t": r"\t"}


def quote_text(text: str) -> str:
    """Return the string literal of a text: what is not printable is escaped as well."""
    return f'"{"".join(map(_escape_character, text))}"'


def format_time(at: datetime) -> str:
    """Return a time as Microsoft's APIs read it, in UTC."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def format_second(at: datetime) -> str:
    """Return a whole second as Microsoft's APIs read it, in UTC."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_interval(window: Window) -> str:
    """Return a window as the interval (ISO 8601) that both APIs take beside the query."""
    return f"{format_time(window.start)}/{format_time(window.end)}"


def build_search_query(
    tables: Iterable[LogTable], time: str, entity: Entity, window: Window, limit: int
) -> str:
    """Return the query for the latest rows of some tables that name an entity.

    It is empty where none of the tables can. `time` is the column that has the time of a row. With
    `union isfuzzy=true` tables are passed over that this customer does not have, and with
    `column_ifexists` columns.
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
        f"{_build_column_expression(it)} =~ wanted" for it in table.columns.get(entity.kind, ())
    ]
    conditions += [
        f"{_build_column_expression(it)} has wanted" for it in table.mentions.get(entity.kind, ())
    ]
    if not conditions:
        return None
    return (
        f"({table.name} | where {time} >= since and {time} < until"
        f" | where {' or '.join(conditions)}"
        f" | project {AT} = {time}, {FROM} = {quote_text(table.name)}, {RECORD} = pack_all(true))"
    )


def _build_column_expression(column: LogColumn) -> str:
    """Return what is compared: a column, or an account of two columns as both in one."""
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
