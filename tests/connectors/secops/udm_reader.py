"""Parser of the UDM searches that the provider builds."""

from __future__ import annotations

import re
from dataclasses import dataclass

_TERM = re.compile(
    r'(?P<field>[a-z][a-z0-9_.]*) = "(?P<value>(?:\\[\\"]|[^\\"\n])*)"(?P<nocase> nocase)?'
)


class BadQuery(ValueError):  # noqa: N818 - what the service answers
    """What is no search of this form."""


@dataclass(frozen=True)
class Term:
    field: str
    value: str
    nocase: bool


def terms(query: str) -> list[Term]:
    """Return what a search looks for, any of it."""
    found, place = [], 0
    while True:
        match = _TERM.match(query, place)
        if match is None:
            raise BadQuery(f"invalid query at {place}")
        value = re.sub(r"\\(.)", r"\1", match["value"])
        found.append(Term(match["field"], value, bool(match["nocase"])))
        place = match.end()
        if place == len(query):
            return found
        if not query.startswith(" OR ", place):
            raise BadQuery(f"invalid query at {place}")
        place += len(" OR ")
