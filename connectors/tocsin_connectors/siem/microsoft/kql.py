"""Queries in the Kusto Query Language, in which a value is never more than a value.

Neither API takes parameters beside a query, so values stand in it as string literals:
https://learn.microsoft.com/kusto/query/scalar-data-types/string. Which escapes there are is in the
grammar, https://github.com/microsoft/Kusto-Query-Language/blob/master/grammar/KqlTokens.g4.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from tocsin import Entity, Window
from tocsin_connectors.siem.microsoft.tables import Column, Table

AT, FROM, RECORD = "EventTime", "EventTable", "EventRecord"
"""The columns of the result: when it was, which table has it, and all that the table has."""
_ESCAPED = {'"': r"\"", "\\": r"\\", "\n": r"\n", "\r": r"\r", "\t": r"\t"}


def literal(text: str) -> str:
    """Return the string literal of a text: what is not printable is escaped as well."""
    return f'"{"".join(map(_in_literal, text))}"'


def moment(at: datetime) -> str:
    """Return a time as Microsoft's APIs read it, in UTC."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def second(at: datetime) -> str:
    """Return a whole second as Microsoft's APIs read it, in UTC."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def timespan(window: Window) -> str:
    """Return a window as the interval (ISO 8601) that both APIs take beside the query."""
    return f"{moment(window.start)}/{moment(window.end)}"


def search(tables: Iterable[Table], time: str, entity: Entity, window: Window, limit: int) -> str:
    """Return the query for the latest rows of some tables that name an entity.

    It is empty where none of the tables can. `time` is the column that has the time of a row. With
    `union isfuzzy=true` tables are passed over that this customer does not have, and with
    `column_ifexists` columns.
    """
    legs = [leg for table in tables if (leg := _leg(table, time, entity))]
    if not legs:
        return ""
    return "\n".join(
        [
            f"let wanted = {literal(entity.value)};",
            f"let since = datetime({moment(window.start)});",
            f"let until = datetime({moment(window.end)});",
            "union isfuzzy=true",
            ",\n".join(legs),
            f"| top {limit:d} by {AT} desc",
        ]
    )


def _leg(table: Table, time: str, entity: Entity) -> str | None:
    conditions = [f"{_value(it)} =~ wanted" for it in table.columns.get(entity.kind, ())]
    conditions += [f"{_value(it)} has wanted" for it in table.mentions.get(entity.kind, ())]
    if not conditions:
        return None
    return (
        f"({table.name} | where {time} >= since and {time} < until"
        f" | where {' or '.join(conditions)}"
        f" | project {AT} = {time}, {FROM} = {literal(table.name)}, {RECORD} = pack_all(true))"
    )


def _value(column: Column) -> str:
    """Return what is compared: a column, or an account of two columns as both in one."""
    if isinstance(column, str):
        return f'column_ifexists({literal(column)}, "")'
    domain, name = map(_value, column)
    whole = f"strcat({domain}, {literal(chr(92))}, {name})"
    return f"iff(isempty({domain}), {name}, {whole})"


def _in_literal(character: str) -> str:
    if character in _ESCAPED:
        return _ESCAPED[character]
    if character.isprintable():
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
