"""Parser of the AQL and API filters that the provider builds; anything else is an error."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]

TEXT = r"'((?:[A-Za-z0-9 .:@/%_-])*)'"
_QUERY = re.compile(
    r"SELECT (?P<columns>.+?) FROM events WHERE (?P<where>.+?)"
    r"(?: ORDER BY starttime DESC)? LIMIT (?P<limit>\d+) START (?P<start>\d+) STOP (?P<stop>\d+)"
)
_WHERE = re.compile(r"\((.+)\) AND starttime >= (\d+) AND starttime < (\d+)")
_NEVER = "starttime < 0"
_IS = re.compile(rf"(\w+) = {TEXT}")
_LIKE = re.compile(rf'(\w+|"[^"]+") ILIKE {TEXT}')
_OR = re.compile(r" OR (?=(?:[^']*'[^']*')*[^']*$)")  # in no text
_AS = re.compile(r"\w+\(\w+\) AS (\w+)")
_BOUND = re.compile(r"(\w+) (>=|<|>) (\d+)")
_EITHER = re.compile(r"\(([^()]+) or ([^()]+)\) and ([^()]+)")
_IN = re.compile(r"id in \((\d+(?:,\d+)*)\)")
_MINUTE = 60_000


class BadQueryError(Exception):
    """What QRadar answers to a query or a filter that it cannot read."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query, as Ariel understands it."""

    columns: tuple[str, ...]
    start: int
    end: int
    limit: int
    finds: Callable[[Row], bool]


def query(aql: str) -> Query:
    """Return what a query asks for; START and STOP are rounded to minutes, as QRadar does."""
    match = _QUERY.fullmatch(aql)
    if match is None:
        raise BadQueryError(f"invalid AQL: {aql!r}")
    start = int(match["start"]) // _MINUTE * _MINUTE
    stop = -(-int(match["stop"]) // _MINUTE) * _MINUTE
    columns = tuple(map(_column, match["columns"].split(", ")))
    if match["where"] == _NEVER:
        return Query(columns, start, start, 1, lambda _: False)
    where = _WHERE.fullmatch(match["where"])
    if where is None:
        raise BadQueryError(f"invalid condition: {match['where']!r}")
    tests = [_test(part) for part in _OR.split(where[1])]
    first, end = max(start, int(where[2])), min(stop, int(where[3]))
    return Query(
        columns, first, end, int(match["limit"]), lambda row: any(test(row) for test in tests)
    )


def _column(words: str) -> str:
    named = _AS.fullmatch(words)
    return named[1] if named else words.strip('"')


def _test(words: str) -> Callable[[Row], bool]:
    if found := _IS.fullmatch(words):
        name, value = found.groups()
        return lambda row: row.get(name) == value
    if found := _LIKE.fullmatch(words):
        name, wanted = found[1].strip('"'), found[2]
        parts = (
            "." if item == "_" else ".*" if item == "%" else re.escape(item) for item in wanted
        )
        form = re.compile("".join(parts), re.IGNORECASE | re.DOTALL)
        return lambda row: form.fullmatch(str(row.get(name) or "")) is not None
    raise BadQueryError(f"invalid condition: {words!r}")


def alternatives(words: str) -> list[str]:
    """Return the filters of which one has to let an offense by."""
    match = _EITHER.fullmatch(words)
    return [words] if match is None else [f"{item} and {match[3]}" for item in match.group(1, 2)]


def bounds(words: str, fields: Mapping[str, Any]) -> dict[str, tuple[int, float]]:
    """Return which fields a filter bounds, from the first number that it lets by to the end."""
    found: dict[str, tuple[int, float]] = {}
    for clause in words.split(" and "):
        match = _BOUND.fullmatch(clause)
        if match is None or match[1] not in fields:
            raise BadQueryError(f"the filter is not valid: {clause!r}")
        name, operator, number = match[1], match[2], int(match[3])
        start, end = found.get(name, (0, float("inf")))
        if operator == "<":
            end = number
        else:
            start = number + (operator == ">")
        found[name] = (start, end)
    return found


def wanted(words: str) -> list[int]:
    """Return the ids that a filter lists."""
    match = _IN.fullmatch(words)
    if match is None:
        raise BadQueryError(f"the filter is not valid: {words!r}")
    return [int(part) for part in match[1].split(",")]
