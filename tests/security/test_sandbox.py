"""Texts of operators under caps: no condition, field or template takes a node's time or memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tocsin.conditions.bindings import SELECTIONS
from tocsin.conditions.filters import FILTERS
from tocsin.conditions.methods import METHODS
from tocsin.conditions.predicates import PREDICATES
from tocsin.sandbox import BoundedEnvironment
from tocsin.sandbox.filters import list_parameters

from .attacks import CONDITIONS, TEMPLATES
from .capped_child import SECONDS, CappedChild

PATHS = ("n", "big", "x", "title", "long", "list", "words", "entities", "nope")
OPERATORS = ("+", "-", "*", "/", "//", "%", "~", "==", "<", ">=", "in", "and", "or", "not in")
NUMBERS = (
    *("0", "1", "-1", "2", "7", "255", "9999", "99999", "9223372036854775807", "1e308", "0.1"),
    *("('nan'|float)", "('inf'|float)", "true", "none"),
)
TEXTS = ("''", "'a'", "'n'", "'value'", "'a.'", "'\\n'", "'<&>'", "'%s %999.999f'", "'upper'")


def describe_arity(function: Callable[..., Any], skipped: int) -> tuple[int, int]:
    """Return how many arguments a filter takes after the value, at least and at most."""
    parameters = signature(function).parameters.values()
    named = [each for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD][skipped:]
    return sum(each.default is each.empty for each in named), len(named)


@dataclass(frozen=True)
class Language:
    """What texts of one kind may use, with the number of arguments that each takes."""

    prefix: str
    filters: Mapping[str, tuple[int, int]]
    tests: Mapping[str, tuple[int, int]]
    methods: Mapping[str, tuple[int, int]]


def describe_arities(
    functions: Mapping[str, Callable[..., Any]], skipped: int
) -> dict[str, tuple[int, int]]:
    return {
        name: describe_arity(function, skipped)
        for name, function in sorted(functions.items())
        if name.isalpha() and name != "in"
    }


_applied = {"map": (1, 2), **dict.fromkeys(SELECTIONS, (1, 2))}
_methods = {**describe_arities(METHODS, 2), "startswith": (1, 1)}
EXPRESSION = Language(
    "", describe_arities(FILTERS, 2) | _applied, describe_arities(PREDICATES, 2), _methods
)
_environment = BoundedEnvironment()
TEMPLATE = Language(
    "event.",
    {
        name: (least - taken, most - taken)
        for name, (least, most) in describe_arities(_environment.filters, 1).items()
        if (taken := most - len(list_parameters(_environment.filters[name]))) is not None
    }
    | _applied
    | {"format": (0, 2)},
    describe_arities(_environment.tests, 1),
    _methods,
)


def expressions(language: Language) -> st.SearchStrategy[str]:
    """Generate nested expressions over the event; most of them are valid."""
    paths = st.sampled_from([f"{language.prefix}data.{path}" for path in PATHS])
    leaves = st.one_of(paths, paths, st.sampled_from(NUMBERS), st.sampled_from(TEXTS))

    def call(form: str, value: st.SearchStrategy[str], arities: Mapping[str, tuple[int, int]]):
        def fill(name: str) -> st.SearchStrategy[str]:
            least, most = arities[name]
            arguments = st.lists(value, min_size=max(least, 0), max_size=max(most, 0))
            return st.builds(form.format, value, st.just(name), arguments.map(", ".join))

        return st.sampled_from(sorted(arities)).flatmap(fill)

    def extend(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        names = st.sampled_from(sorted(language.filters))
        path = st.sampled_from(["value", "n", "0", "a.b", "a." * 60, "a." * 2_000])
        return st.one_of(
            call("({})|{}({})", inner, language.filters),
            call("(({})|{}({})|list)", inner, language.filters),
            call("({} is {}({}))", inner, language.tests),
            call("({}).{}({})", inner, language.methods),
            st.builds("({} {} {})".format, inner, st.sampled_from(OPERATORS), inner),
            st.builds("({})|map('{}')|list".format, inner, names),
            st.builds("({})|map(attribute='{}', default={})|list".format, inner, path, inner),
            st.builds("({})|sort(attribute='{}')".format, inner, path),
            st.builds("({})[{}:{}]".format, inner, inner, inner),
            st.builds("[{}, {}]".format, inner, inner),
            st.builds("{{'a': {}}}".format, inner),
            st.builds("({} if {} else {})".format, inner, inner, inner),
        )

    return st.recursive(leaves, extend, max_leaves=8)


def templates() -> st.SearchStrategy[str]:
    """Generate templates around such expressions, some of which repeat or double their value."""
    inner = expressions(TEMPLATE)
    names = st.sampled_from(sorted(TEMPLATE.filters))
    return st.one_of(
        st.builds("{{{{ {} }}}}".format, inner),
        st.builds("{{% for a in {} %}}{{{{ {} ~ a }}}}{{% endfor %}}".format, inner, inner),
        st.builds("{{% set x %}}{{{{ {} }}}}{{% endset %}}{{{{ x * {} }}}}".format, inner, inner),
        st.builds(
            "{{% set n = namespace(x={}) %}}{{% for a in range(40) %}}"
            "{{% set n.x = [n.x, n.x, {}] %}}{{% endfor %}}{{{{ n.x|{} }}}}".format,
            inner,
            inner,
            names,
        ),
        st.builds(
            "{{% macro m(a) %}}{{{{ a }}}}{{{{ a|{} }}}}{{% endmacro %}}{{{{ m(m({})) }}}}".format,
            names,
            inner,
        ),
    )


@pytest.fixture(scope="module")
def child() -> Iterator[CappedChild]:
    child = CappedChild()
    yield child
    child.close()


@pytest.fixture(autouse=True)
def count_cases(child: CappedChild, record_property: Callable[[str, object], None]):
    """Record how many texts a test evaluates; generated ones count one by one."""
    before = child.evaluated
    yield
    record_property("cases", child.evaluated - before)


def expect_bounded(child: CappedChild, kind: str, text: str) -> None:
    result = child.evaluate(kind, text)
    assert result["outcome"] not in ("killed", "memory"), text
    assert result["seconds"] < SECONDS, (text, result)


# "ended" for what these attacks did before they were refused is checked where the rules are
@pytest.mark.parametrize("text", CONDITIONS, ids=range(len(CONDITIONS)))
def test_known_bombs_in_conditions_are_bounded(child, text):
    expect_bounded(child, "expression", text)


@given(text=expressions(EXPRESSION))
def test_no_condition_breaks_its_caps(child, text):
    expect_bounded(child, "expression", text)


@pytest.mark.full
@pytest.mark.timeout(1_800)
@given(text=expressions(EXPRESSION))
@settings(max_examples=10_000)
def test_none_of_many_conditions_breaks_its_caps(child, text):
    expect_bounded(child, "expression", text)


@pytest.mark.parametrize("text", TEMPLATES, ids=range(len(TEMPLATES)))
def test_known_bombs_in_templates_are_bounded(child, text):
    expect_bounded(child, "template", text)


@given(text=templates())
def test_no_template_breaks_its_caps(child, text):
    expect_bounded(child, "template", text)


@pytest.mark.full
@pytest.mark.timeout(1_800)
@given(text=templates())
@settings(max_examples=10_000)
def test_none_of_many_templates_breaks_its_caps(child, text):
    expect_bounded(child, "template", text)
