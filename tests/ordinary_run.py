"""Selection of the tests of ordinary runs; all others get the marker `full`."""

from __future__ import annotations

from collections import defaultdict
from typing import TypeVar
from zlib import crc32

import pytest

_Case = TypeVar("_Case")
_BACKENDS = {"sqlite", "postgresql"}
_BOTH_BACKENDS = "tests/core/store/"
"""Where each test runs on both databases: what differs between them lies there."""
_SUITES = ("tests/connectors/", "tests/plugins/ticketing/")
_RULES = "tocsin.testing.conformance."
_WHOLE_TABLES = (
    "tests/test_",
    "tests/docs/",
    "tests/security/",
    "tests/core/net/",
    "tests/core/store/",
)


def mark_full(items: list[pytest.Item]) -> None:
    """Mark what ordinary runs leave out by rules rather than one by one.

    Of a test for both databases they take one, PostgreSQL for each sixteenth; a rule of a
    conformance kit in an eighth of the suites; and of a test with several cases the first and the
    last. The choice depends on names alone: each worker and each run makes the same.
    """
    tables: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        rule = getattr(item, "function", None)
        if _is_for_other_database(item, item.nodeid) or is_for_other_suite(item.nodeid, rule):
            item.add_marker(pytest.mark.full)
        elif not item.get_closest_marker("full"):
            tables[item.nodeid.partition("[")[0]].append(item)
    for name, cases in tables.items():
        for case in set(cases) - set(_select_ordinary(name, cases)):
            case.add_marker(pytest.mark.full)


def drop_full_cases(metafunc: pytest.Metafunc) -> None:
    """Drop the cases that `mark_full` would mark: to collect them takes as long as the others.

    One stays in any case, since a test without cases would be collected as one without parameters.
    """
    definition = metafunc.definition
    cases = metafunc._calls
    ordinary = [
        case
        for case in cases
        if not _is_for_other_database(definition, f"{definition.nodeid}[{case.id}]")
        and not any(mark.name == "full" for mark in case.marks)
    ]
    metafunc._calls = _select_ordinary(definition.nodeid, ordinary) or cases[:1]


def _select_ordinary(name: str, cases: list[_Case]) -> list[_Case]:
    """Return the cases of a test that ordinary runs take: in most tests the first and the last."""
    return cases if name.startswith(_WHOLE_TABLES) else [*cases[:1], *cases[1:][-1:]]


def _is_for_other_database(item: pytest.Item, nodeid: str) -> bool:
    """Return whether ordinary runs take this case on the other database."""
    name, _, parameters = nodeid.partition("[")
    values = parameters.removesuffix("]").split("-")
    backend = _BACKENDS.intersection(values)
    if not name.startswith("tests/core/") or name.startswith(_BOTH_BACKENDS) or not backend:
        return False
    case = "-".join([name, *(value for value in values if value not in _BACKENDS)])
    chosen = "sqlite" if crc32(case.encode()) % 16 else "postgresql"
    return backend != {chosen} and _runs_on_both(item)


def _runs_on_both(item: pytest.Item) -> bool:
    """Return whether nothing at the test itself says on which database it runs."""
    marks = item.iter_markers("parametrize")
    return not any("database_url" in str(mark.args[0]) for mark in marks)


def is_for_other_suite(nodeid: str, rule: object) -> bool:
    """Return whether ordinary runs look at this rule in other suites."""
    if not nodeid.startswith(_SUITES) or not getattr(rule, "__module__", "").startswith(_RULES):
        return False
    return crc32(nodeid.partition("[")[0].encode()) % 8 != 0
