"""Texts of operators under caps: no condition, field or template takes a node's time or memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from inspect import signature
from random import Random
from secrets import randbits
from typing import Any

import pytest

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
MANY = 10_000
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


# Parts of texts: # is an expression; F, T and M are calls of a filter, a test and a method; N is
# the name of a filter, O an operator and A an attribute
EXPRESSIONS = (
    *("(#)|F", "((#)|F|list)", "(# is T)", "(#).M", "(# O #)", "(#)|map('N')|list"),
    *("(#)|map(attribute='A', default=#)|list", "(#)|sort(attribute='A')", "(#)[#:#]", "[#, #]"),
    *("{'a': #}", "(# if # else #)"),
)
TEXTS_OF_TEMPLATES = (
    "{{ # }}",
    "{% for a in # %}{{ # ~ a }}{% endfor %}",
    "{% set x %}{{ # }}{% endset %}{{ x * # }}",
    "{% set n = namespace(x=#) %}{% for a in range(40) %}{% set n.x = [n.x, n.x, #] %}{% endfor %}"
    "{{ n.x|N }}",
    "{% macro m(a) %}{{ a }}{{ a|N }}{% endmacro %}{{ m(m(#)) }}",
)
ATTRIBUTES = ("value", "n", "0", "a.b", "a." * 60, "a." * 2_000)


class Author:
    """Writes texts at random, the same ones for a seed; a quarter of them are not refused.

    Hypothesis would also find the shortest ones, but takes longer to write a text than it takes to
    evaluate it.
    """

    def __init__(self, seed: object, language: Language) -> None:
        self._random = Random(str(seed))
        self._language = language

    def write_expression(self, size: int = 8) -> str:
        """Return a nested expression over the event."""
        choose = self._random.choice
        if size > 1:
            return self._fill(choose(EXPRESSIONS), size // 2)
        path = f"{self._language.prefix}data.{choose(PATHS)}"
        return choose((path, path, choose(NUMBERS), choose(TEXTS)))

    def write_template(self) -> str:
        """Return a template around expressions, which may repeat or double their value."""
        return self._fill(self._random.choice(TEXTS_OF_TEMPLATES), 8)

    def _fill(self, form: str, size: int) -> str:
        return re.sub("[#FTMNOA]", lambda found: self._write_part(found[0], size), form)

    def _write_part(self, part: str, size: int) -> str:
        choose, language = self._random.choice, self._language
        match part:
            case "#":
                return self.write_expression(self._random.randint(1, size))
            case "N":
                return choose(sorted(language.filters))
            case "O":
                return choose(OPERATORS)
            case "A":
                return choose(ATTRIBUTES)
        calls = {"F": language.filters, "T": language.tests, "M": language.methods}[part]
        name = choose(sorted(calls))
        least, most = (max(count, 0) for count in calls[name])
        count = self._random.randint(least, max(least, most))
        return f"{name}({', '.join(self._write_part('#', size) for _ in range(count))})"


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


def test_no_condition_breaks_its_caps(child):
    for seed in range(100):
        expect_bounded(child, "expression", Author(seed, EXPRESSION).write_expression())


@pytest.mark.full
@pytest.mark.timeout(1_800)
def test_none_of_many_conditions_breaks_its_caps(child):
    for seed in begin_anywhere():
        expect_bounded(child, "expression", Author(seed, EXPRESSION).write_expression())


@pytest.mark.parametrize("text", TEMPLATES, ids=range(len(TEMPLATES)))
def test_known_bombs_in_templates_are_bounded(child, text):
    expect_bounded(child, "template", text)


def test_no_template_breaks_its_caps(child):
    for seed in range(15):
        expect_bounded(child, "template", Author(seed, TEMPLATE).write_template())


@pytest.mark.full
@pytest.mark.timeout(1_800)
def test_none_of_many_templates_breaks_its_caps(child):
    for seed in begin_anywhere():
        expect_bounded(child, "template", Author(seed, TEMPLATE).write_template())


def begin_anywhere() -> range:
    """Return the seeds of texts that no earlier run has tried."""
    begin = randbits(64)
    return range(begin, begin + MANY)
