"""Selection of the tests of ordinary runs; all others get the marker `full`."""

from __future__ import annotations

from collections import defaultdict
from zlib import crc32

import pytest

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
        if _is_for_other_database(item) or _is_for_other_suite(item):
            item.add_marker(pytest.mark.full)
        elif not item.get_closest_marker("full"):
            tables[item.nodeid.partition("[")[0]].append(item)
    for name, cases in tables.items():
        if not name.startswith(_WHOLE_TABLES):
            for case in cases[1:-1]:
                case.add_marker(pytest.mark.full)


def _is_for_other_database(item: pytest.Item) -> bool:
    """Return whether ordinary runs take this case on the other database."""
    name, _, parameters = item.nodeid.partition("[")
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


def _is_for_other_suite(item: pytest.Item) -> bool:
    """Return whether ordinary runs look at this rule in other suites."""
    rule = getattr(item, "function", None)
    is_rule = getattr(rule, "__module__", "").startswith(_RULES)
    return is_rule and item.nodeid.startswith(_SUITES) and crc32(item.nodeid.encode()) % 8 != 0
