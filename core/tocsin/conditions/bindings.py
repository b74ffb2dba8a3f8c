"""Filters, tests and methods of expressions, bound to their arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any

from jinja2 import nodes

from tocsin.conditions.filters import FILTERS
from tocsin.conditions.methods import METHODS
from tocsin.conditions.predicates import PREDICATES
from tocsin.conditions.values import MISSING, find_path, is_true, parse_path, to_items
from tocsin.sandbox import Allowance


@dataclass(frozen=True, slots=True)
class EvaluationScope:
    """What one evaluation sees, and what it may use."""

    variables: Mapping[str, Any]
    allowance: Allowance


Evaluator = Callable[[EvaluationScope], Any]
Binding = Callable[[EvaluationScope], Callable[[Any], Any]]
"""Evaluates the arguments of a filter or test once, and returns a function of its value."""


def bind_filter(
    node: nodes.Filter, args: Sequence[Evaluator], kwargs: Mapping[str, Evaluator]
) -> Binding:
    """Return the binding of a filter; ValueError if there is none, or its arguments do not fit."""
    if node.name == "map":
        return _bind_map(node, args, kwargs)
    if node.name in SELECTIONS:
        return _bind_selection(node, args, kwargs)
    return _bind_plain_filter(node.name, args, kwargs)


def bind_method(name: str, args: Sequence[Evaluator], kwargs: Mapping[str, Evaluator]) -> Binding:
    """Return the binding of a method; ValueError if its arguments do not fit."""
    return _bind(f"{name}()", METHODS[name], args, kwargs)


def _bind_plain_filter(
    name: str, args: Sequence[Evaluator], kwargs: Mapping[str, Evaluator]
) -> Binding:
    if name not in FILTERS:
        known = ", ".join(sorted((*FILTERS, "map", *SELECTIONS)))
        raise ValueError(f"unknown filter {name!r}; use one of {known}")
    return _bind(f"the filter {name}", FILTERS[name], args, kwargs)


def bind_predicate(
    name: str, args: Sequence[Evaluator], kwargs: Mapping[str, Evaluator]
) -> Binding:
    """Return the binding of a test; ValueError if there is none, or its arguments do not fit."""
    if name not in PREDICATES:
        known = ", ".join(sorted(PREDICATES))
        raise ValueError(f"unknown test {name!r}; use one of {known}")
    return _bind(f"the test {name}", PREDICATES[name], args, kwargs)


def _bind(
    what: str,
    function: Callable[..., Any],
    args: Sequence[Evaluator],
    kwargs: Mapping[str, Evaluator],
) -> Binding:
    try:
        signature(function).bind(None, None, *args, **kwargs)
    except TypeError as error:
        raise ValueError(f"{what}: {error}") from None

    def bind(scope: EvaluationScope) -> Callable[[Any], Any]:
        given = [arg(scope) for arg in args]
        named = {key: value(scope) for key, value in kwargs.items()}
        allowance = scope.allowance
        return lambda value: function(allowance, value, *given, **named)

    return bind


def _bind_map(
    node: nodes.Filter, args: Sequence[Evaluator], kwargs: Mapping[str, Evaluator]
) -> Binding:
    if args:
        bind = _bind_plain_filter(_constant_text(node.args[0], "map", "filter"), args[1:], kwargs)
    elif {"attribute"} <= set(kwargs) <= {"attribute", "default"}:
        bind = _bind_member(kwargs["attribute"], kwargs.get("default"))
    else:
        raise ValueError(
            "map requires the name of a filter, or `attribute` and optionally `default`"
        )

    def apply(scope: EvaluationScope) -> Callable[[Any], list[Any]]:
        convert = bind(scope)
        return lambda value: [convert(item) for item in to_items(value, scope.allowance)]

    return apply


def _bind_member(path: Evaluator, default: Evaluator | None) -> Binding:
    def bind(scope: EvaluationScope) -> Callable[[Any], Any]:
        keys = parse_path(path(scope))
        otherwise = default(scope) if default else MISSING

        def find(item: Any) -> Any:
            found = find_path(item, keys, scope.allowance)
            return otherwise if found is MISSING else found

        return find

    return bind


SELECTIONS: Mapping[str, tuple[bool, bool]] = {
    "select": (True, False),
    "reject": (False, False),
    "selectattr": (True, True),
    "rejectattr": (False, True),
}
"""Filters by name: the answer for items that stay, and whether a member decides."""


def _bind_selection(
    node: nodes.Filter, args: Sequence[Evaluator], kwargs: Mapping[str, Evaluator]
) -> Binding:
    wanted, by_member = SELECTIONS[node.name]
    if by_member and not args:
        raise ValueError(f"{node.name} requires the dotted path of a member as its first argument")
    path, test_args = (args[0], args[1:]) if by_member else (None, args)
    if test_args:
        test = _constant_text(node.args[int(by_member)], node.name, "test")
        bind = bind_predicate(test, test_args[1:], kwargs)
    else:
        bind = _bind_truth

    def apply(scope: EvaluationScope) -> Callable[[Any], list[Any]]:
        keys = parse_path(path(scope)) if path else ()
        matches, allowance = bind(scope), scope.allowance

        def select(value: Any) -> list[Any]:
            return [
                item
                for item in to_items(value, allowance)
                if matches(find_path(item, keys, allowance)) is wanted
            ]

        return select

    return apply


def _bind_truth(_scope: EvaluationScope) -> Callable[[Any], bool]:
    return is_true


def _constant_text(node: nodes.Expr, whose: str, what: str) -> str:
    if not isinstance(node, nodes.Const) or not isinstance(node.value, str):
        raise ValueError(f"{whose} requires the name of a {what} in quotes")  # noqa: TRY004
    return node.value
