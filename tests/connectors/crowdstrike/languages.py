"""Parser of the filters and queries that the provider builds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from tocsin import Window

_CLAUSE = re.compile(
    r"""(?P<field>[a-z_.]+):(?P<operator>>=|<=|>|<|!|)'(?P<value>(?:\\[\\']|[^\\'])*)'""", re.DOTALL
)
_TEST = re.compile(r"test\(lower\((?P<field>[A-Za-z0-9_.]+)\) == lower\(\?value\)\)")
_QUERY = re.compile(
    r"(?P<tests>.+) \| @timestamp >= (?P<start>\d+) \| @timestamp < (?P<end>\d+)"
    r" \| tail\((?P<limit>\d+)\)"
)
NOTHING = "test(?value == ?value) | tail(1)"


class BadQuery(ValueError):  # noqa: N818 - what the service answers
    """What is no filter, or no query, of these forms."""


@dataclass(frozen=True)
class Clause:
    field: str
    operator: str
    value: str


@dataclass(frozen=True)
class Query:
    fields: tuple[str, ...]
    window: Window
    limit: int


def clauses(words: str) -> list[Clause]:
    """Return what a filter demands, all of it at once."""
    found, place = [], 0
    while True:
        match = _CLAUSE.match(words, place)
        if match is None:
            raise BadQuery(f"invalid filter at {place}")
        value = re.sub(r"\\(.)", r"\1", match["value"], flags=re.DOTALL)
        found.append(Clause(match["field"], match["operator"], value))
        place = match.end()
        if place == len(words):
            return found
        if words[place] != "+":
            raise BadQuery(f"invalid filter at {place}")
        place += 1


def updated_within(words: str) -> Window:
    """Return the window of a filter, at the milliseconds that the index has."""
    match clauses(words):
        case [Clause("updated_timestamp", ">=", start), Clause("updated_timestamp", "<", end)]:
            return Window(*(datetime.fromisoformat(item) for item in (start, end)))
    raise BadQuery("not by the time of the update")


def query(words: str) -> Query:
    """Return what a query of Next-Gen SIEM asks for."""
    match = _QUERY.fullmatch(words)
    tests = [_TEST.fullmatch(part) for part in match["tests"].split(" or ")] if match else []
    if match is None or not all(tests):
        raise BadQuery("The query could not be parsed")
    start, end = (datetime.fromtimestamp(int(match[name]) / 1000, UTC) for name in ("start", "end"))
    fields = tuple(test["field"] for test in tests if test)
    return Query(fields, Window(start, end), int(match["limit"]))
