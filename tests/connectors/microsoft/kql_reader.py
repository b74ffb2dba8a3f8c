"""Parser of the KQL queries that the providers build; anything else is an error.

The tokens are those of Microsoft's KqlTokens.g4. No code is shared with the query builder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from tocsin import Window

_TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<string>"(?:\\(?:["'\\abfnrtv]|u[0-9a-fA-F]{4})|[^"\\\r\n])*")
    |(?P<time>datetime\([0-9TZ:.-]+\))
    |(?P<number>[0-9]+)
    |(?P<name>[A-Za-z_$][A-Za-z0-9_]*)
    |(?P<sign>=~|>=|[|(),;=<])""",
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_SHORT = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class BadQuery(ValueError):  # noqa: N818 - what the service answers
    """What is no query of this form."""


@dataclass(frozen=True)
class Token:
    kind: str
    text: str


@dataclass(frozen=True)
class Leg:
    """One table of a union: which of its columns have to be, or to hold, the value."""

    table: str
    time: str
    columns: tuple[tuple[str, ...], ...]
    operators: tuple[str, ...]


@dataclass(frozen=True)
class Query:
    wanted: str
    window: Window
    legs: tuple[Leg, ...]
    limit: int


def tokens_of(query: str) -> list[Token]:
    found, place = [], 0
    while place < len(query):
        match = _TOKEN.match(query, place)
        if match is None:
            raise BadQuery(f"a syntax error at {query[place : place + 20]!r}")
        if match.lastgroup != "space":
            found.append(Token(match.lastgroup or "", match[0]))
        place = match.end()
    return found


def text_of(token: Token) -> str:
    """Return the text that a string literal stands for; escapes of UTF-16 come in pairs."""

    def decoded(match: re.Match[str]) -> str:
        escape = match[1]
        if len(escape) == 5:
            return chr(int(escape[1:], 16))
        return _SHORT.get(escape, escape)

    units = _ESCAPE.sub(decoded, token.text[1:-1])
    return units.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


class _Reader:
    def __init__(self, query: str) -> None:
        self._tokens: Iterator[Token] = iter(tokens_of(query))
        self._next = next(self._tokens, Token("end", ""))

    def take(self, kind: str) -> Token:
        token, self._next = self._next, next(self._tokens, Token("end", ""))
        if token.kind != kind:
            raise BadQuery(f"a syntax error at {token.text!r}: no {kind}")
        return token

    def is_next(self, text: str) -> bool:
        return self._next.text == text and self._next.kind != "string"

    def words(self, text: str) -> None:
        for expected in text.split():
            token, self._next = self._next, next(self._tokens, Token("end", ""))
            if token.text != expected or token.kind == "string":
                raise BadQuery(f"a syntax error at {token.text!r}: no {expected}")

    def query(self) -> Query:
        self.words("let wanted =")
        wanted = text_of(self.take("string"))
        since, until = self.time("since"), self.time("until")
        self.words("; union isfuzzy = true")
        legs = [self.leg()]
        while self.is_next(","):
            self.words(",")
            legs.append(self.leg())
        self.words("| top")
        limit = int(self.take("number").text)
        self.words("by EventTime desc")
        self.take("end")
        return Query(wanted, Window(since, until), tuple(legs), limit)

    def time(self, name: str) -> datetime:
        self.words(f"; let {name} =")
        return datetime.fromisoformat(self.take("time").text[len("datetime(") : -1])

    def leg(self) -> Leg:
        self.words("(")
        table = self.take("name").text
        self.words("| where")
        time = self.take("name").text
        self.words(f">= since and {time} < until | where")
        conditions = [self.condition()]
        while self.is_next("or"):
            self.words("or")
            conditions.append(self.condition())
        self.words(f"| project EventTime = {time} , EventTable =")
        if text_of(self.take("string")) != table:
            raise BadQuery("the wrong name of a table")
        self.words(", EventRecord = pack_all ( true ) )")
        columns, operators = zip(*conditions, strict=True)
        return Leg(table, time, columns, operators)

    def condition(self) -> tuple[tuple[str, ...], str]:
        columns = self.value()
        operator = "=~" if self.is_next("=~") else "has"
        self.words(f"{operator} wanted")
        return columns, operator

    def value(self) -> tuple[str, ...]:
        if self.is_next("iff"):
            self.words("iff ( isempty (")
            domain = self.value()
            self.words(") ,")
            name = self.value()
            self.words(", strcat (")
            if self.value() != domain:
                raise BadQuery("another domain")
            self.words(",")
            if text_of(self.take("string")) != "\\":
                raise BadQuery("another separator")
            self.words(",")
            if self.value() != name:
                raise BadQuery("another name")
            self.words(") )")
            return (*domain, *name)
        self.words("column_ifexists (")
        column = text_of(self.take("string"))
        self.words(",")
        if text_of(self.take("string")):
            raise BadQuery("a default that is not empty")
        self.words(")")
        return (column,)


def read(query: str) -> Query:
    """Return what a query asks for; BadQuery where it is of any other form."""
    return _Reader(query).query()
