"""Texts of operators under caps: no condition, field or template takes a node's time or memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tocsin.conditions.bindings import SELECTIONS
from tocsin.conditions.filters import FILTERS as EXPRESSION_FILTERS
from tocsin.conditions.methods import METHODS
from tocsin.conditions.predicates import PREDICATES

from .capped_child import SECONDS, CappedChild

PATHS = ("n", "big", "x", "title", "long", "list", "words", "entities", "nope")
NAMES = ("attribute", "default", "width", "length", "d", "reverse", "count", "start", "indent")
FILTERS = sorted({*EXPRESSION_FILTERS, "map", *SELECTIONS})
TESTS = sorted(name for name in PREDICATES if name.isalpha() and name != "in")
OPERATORS = ("+", "-", "*", "/", "//", "%", "~", "==", "<", ">=", "in", "and", "or", "not in")


NUMBERS = (
    *("0", "1", "-1", "2", "7", "255", "9999", "10**9", "99999", "9223372036854775807", "1e308"),
    *("0.1", "('nan'|float)", "('inf'|float)", "true", "none"),
)
TEXTS = (
    *("''", "'a'", "'n'", "'value'", "'a.'", "'\\n'", "'<&>'", "'%s %999.999f'"),
    *("'upper'", "'in'"),
)


def expressions(prefix: str, filters: list[str], tests: list[str]) -> st.SearchStrategy[str]:
    """Generate nested expressions over the event; most of them are valid."""
    paths = st.sampled_from([f"{prefix}data.{path}" for path in PATHS])
    leaves = st.one_of(paths, paths, st.sampled_from(NUMBERS), st.sampled_from(TEXTS))

    def extend(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        named = st.builds("{}={}".format, st.sampled_from(NAMES), inner)
        arguments = st.lists(st.one_of(inner, named), max_size=2).map(", ".join)
        called = st.builds("({})|{}({})".format, inner, st.sampled_from(filters), arguments)
        return st.one_of(
            called,
            called,
            st.builds("({})|{}".format, inner, st.sampled_from(filters)),
            st.builds("(({})|{}|list)".format, inner, st.sampled_from(filters)),
            st.builds("({} {} {})".format, inner, st.sampled_from(OPERATORS), inner),
            st.builds("({} is {}({}))".format, inner, st.sampled_from(tests), inner),
            st.builds("({})|map('{}', {})|list".format, inner, st.sampled_from(filters), inner),
            st.builds("({}).{}({})".format, inner, st.sampled_from(sorted(METHODS)), arguments),
            st.builds("({})[{}:{}]".format, inner, inner, inner),
            st.builds("[{}, {}]".format, inner, inner),
            st.builds("{{'a': {}}}".format, inner),
            st.builds("({} if {} else {})".format, inner, inner, inner),
        )

    return st.recursive(leaves, extend, max_leaves=12)


@pytest.fixture(scope="module")
def child() -> Iterator[CappedChild]:
    child = CappedChild()
    yield child
    child.close()


def expect_bounded(child: CappedChild, kind: str, text: str) -> None:
    result = child.evaluate(kind, text)
    assert result["outcome"] not in ("killed", "memory"), text
    assert result["seconds"] < SECONDS, (text, result)


# "ended" for what these attacks did before they were refused is checked where the rules are
@pytest.mark.parametrize(
    "text",
    [
        """[[1]|batch("nan"|float), ("a"*20000)|list|map(attribute="a."*30000,default={})|list]""",
        "('a'*5000)|list|map(attribute='a.'*4000,default={})|list",
        "1|tojson('a'*60000)",
        "data" + "|e" * 280,
        "data.n" + "|upper" * 160,
    ],
)
def test_known_bombs_in_conditions_are_bounded(child, text):
    expect_bounded(child, "expression", text)


@given(text=expressions("", FILTERS, TESTS))
def test_no_condition_breaks_its_caps(child, text):
    expect_bounded(child, "expression", text)


@pytest.mark.full
@given(text=expressions("", FILTERS, TESTS))
@settings(max_examples=20_000)
def test_none_of_many_conditions_breaks_its_caps(child, text):
    expect_bounded(child, "expression", text)
