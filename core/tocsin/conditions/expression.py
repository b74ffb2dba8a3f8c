"""Expressions and conditions: parsing, limits, evaluation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any

from jinja2 import Environment, TemplateSyntaxError, nodes
from jinja2.parser import Parser
from pydantic import AfterValidator

from tocsin.conditions.bindings import EvaluationScope, Evaluator
from tocsin.conditions.compiler import compile_node
from tocsin.conditions.values import is_true, to_json
from tocsin.sandbox import Allowance

MAX_LENGTH = 1_000
"""Characters of an expression."""
MAX_UNITS = 200_000
MAX_SECONDS = 0.05
_ASSIGNS = re.compile(r"(?<![=!<>])=(?!=)")
_HINT = "; to compare, write == instead of ="
_syntax = Environment()  # noqa: S701 - nothing is rendered


class Expression:
    """An expression that Tocsin evaluates for an event.

    The constructor raises ValueError for an invalid expression.
    """

    def __init__(self, text: str) -> None:
        self._evaluate = _compile(text)

    def value(self, variables: Mapping[str, Any], allowance: Allowance | None = None) -> Any:
        """Return the expression's value for these variables; None if the event lacks that value.

        To make several expressions share the limits for time and memory, pass the same `allowance`
        to each. Raises `AllowanceExhausted` if the expression takes too much time or memory, and
        TypeError, ValueError or ArithmeticError if the expression does not have a value, for
        example because it adds a number to a string.
        """
        scope = EvaluationScope(variables, allowance or make_allowance())
        return to_json(self._evaluate(scope), scope.allowance)


class Condition(Expression):
    """A Boolean expression that Tocsin evaluates for an event."""

    def holds(self, variables: Mapping[str, Any]) -> bool:
        """Return whether the condition is true for these variables.

        Raises the same errors as `value`.
        """
        return is_true(self._evaluate(EvaluationScope(variables, make_allowance())))


def make_allowance() -> Allowance:
    """Return the allowance of one expression, or of several that share it."""
    return Allowance(MAX_UNITS, MAX_SECONDS)


@lru_cache(maxsize=512)
def _compile(text: str) -> Evaluator:
    """Return the evaluator of an expression; ValueError if it is not one."""
    if len(text) > MAX_LENGTH:
        raise ValueError(f"an expression can have at most {MAX_LENGTH:,} characters")
    try:
        return compile_node(_parse(text))
    except TemplateSyntaxError as error:
        message = f"this is not a valid Jinja2 expression: {error.message}"
        raise ValueError(f"{message}{_HINT if _ASSIGNS.search(text) else ''}") from None
    except RecursionError:
        raise ValueError("this expression is nested too deeply") from None


def _parse(text: str) -> nodes.Expr:
    parser = Parser(_syntax, text, state="variable")
    expression = parser.parse_expression()
    if not parser.stream.eos:
        parser.fail(f"unexpected {parser.stream.current.value!r} after the expression")
    return expression


def _validate(text: str) -> str:
    _compile(text)
    return text


ExpressionText = Annotated[str, AfterValidator(_validate)]
"""Text of a valid expression."""
ConditionText = ExpressionText
"""Text of a condition, which must be a valid expression."""
