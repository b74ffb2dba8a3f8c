"""Compilation of parsed expressions into evaluators.

Only the nodes that are listed here exist. Each evaluator runs its parts at most once, except for
`map`, `select` and their kin, which pay for each item of a list.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from jinja2 import nodes

from tocsin.conditions.bindings import (
    EvaluationScope,
    Evaluator,
    bind_filter,
    bind_method,
    bind_predicate,
)
from tocsin.conditions.methods import METHODS
from tocsin.conditions.values import (
    MAX_BITS,
    MISSING,
    are_equal,
    find_member,
    is_at_most,
    is_in,
    is_less,
    is_true,
    to_number,
    to_text,
)
from tocsin.sandbox import Allowance

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")

VARIABLES = ("event_type", "data", "subject", "context")
MAX_DEPTH = 150


_Comparison = Callable[[Any, Any, Allowance], bool]
_COMPARISONS: Mapping[str, _Comparison] = {
    "eq": are_equal,
    "ne": lambda left, right, allowance: not are_equal(left, right, allowance),
    "lt": is_less,
    "gt": lambda left, right, allowance: is_less(right, left, allowance),
    "lteq": is_at_most,
    "gteq": lambda left, right, allowance: is_at_most(right, left, allowance),
    "in": is_in,
    "notin": lambda left, right, allowance: not is_in(left, right, allowance),
}
_ARITHMETIC: Mapping[type[nodes.Expr], Callable[[Any, Any], Any]] = {
    nodes.Sub: operator.sub,
    nodes.Mul: operator.mul,
    nodes.Div: operator.truediv,
    nodes.FloorDiv: operator.floordiv,
    nodes.Mod: operator.mod,
}


def compile_node(node: nodes.Node, depth: int = 0) -> Evaluator:
    """Return the evaluator of a node; ValueError if expressions do not have it."""
    if depth > MAX_DEPTH:
        raise ValueError("this expression is nested too deeply")
    for kind in type(node).__mro__:
        if kind in _COMPILERS:
            return _COMPILERS[kind](node, depth + 1)
    name = "**" if isinstance(node, nodes.Pow) else type(node).__name__.lower()
    raise ValueError(f"{name!r} is not available in expressions")


def _compile_all(parts: Iterable[nodes.Node], depth: int) -> Sequence[Evaluator]:
    return [compile_node(part, depth) for part in parts]


def _constant(node: nodes.Const, _depth: int) -> Evaluator:
    value = node.value
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise ValueError(f"an integer can have at most {MAX_BITS} bits")
    if isinstance(value, str) and _LONE_SURROGATE.search(value):
        raise ValueError(f"the string {value!a:.40} contains an unpaired surrogate")
    return lambda _scope: value


def _name(node: nodes.Name, _depth: int) -> Evaluator:
    name = node.name
    if name not in VARIABLES:
        raise ValueError(f"unknown name {name!r}; use one of {', '.join(VARIABLES)}")
    return lambda scope: scope.variables.get(name, MISSING)


def _list(node: nodes.List | nodes.Tuple, depth: int) -> Evaluator:
    items = _compile_all(node.items, depth)
    return lambda scope: [item(scope) for item in items]


def _object(node: nodes.Dict, depth: int) -> Evaluator:
    members = [(_text_key(pair.key), compile_node(pair.value, depth)) for pair in node.items]
    return lambda scope: {name: value(scope) for name, value in members}


def _text_key(node: nodes.Expr) -> str:
    if not isinstance(node, nodes.Const) or not isinstance(node.value, str):
        raise ValueError("the member names of an object must be quoted strings")  # noqa: TRY004
    return node.value


def _attribute(node: nodes.Getattr, depth: int) -> Evaluator:
    inner, name = compile_node(node.node, depth), node.attr
    return lambda scope: find_member(inner(scope), name)


def _item(node: nodes.Getitem, depth: int) -> Evaluator:
    inner = compile_node(node.node, depth)
    if isinstance(node.arg, nodes.Slice):
        return _slice(inner, node.arg, depth)
    key = compile_node(node.arg, depth)
    return lambda scope: find_member(inner(scope), key(scope))


def _slice(inner: Evaluator, node: nodes.Slice, depth: int) -> Evaluator:
    if node.step is not None:
        raise ValueError("write a slice as [start:stop], without a step")
    start, stop = (
        compile_node(bound, depth) if bound else _nothing for bound in (node.start, node.stop)
    )

    def evaluate(scope: EvaluationScope) -> Any:
        value, begin, end = inner(scope), start(scope), stop(scope)
        if value is MISSING:
            return MISSING
        if not isinstance(value, str | list):
            raise TypeError("only strings and lists can be sliced")
        scope.allowance.spend(1 + len(value))
        return value[begin:end]

    return evaluate


def _nothing(_scope: EvaluationScope) -> None:
    return None


def _compare(node: nodes.Compare, depth: int) -> Evaluator:
    first = compile_node(node.expr, depth)
    rest = [(_COMPARISONS[each.op], compile_node(each.expr, depth)) for each in node.ops]

    def evaluate(scope: EvaluationScope) -> bool:
        left = first(scope)
        for comparison, operand in rest:
            right = operand(scope)
            if not comparison(left, right, scope.allowance):
                return False
            left = right
        return True

    return evaluate


def _and(node: nodes.And, depth: int) -> Evaluator:
    left, right = _compile_all((node.left, node.right), depth)

    def evaluate(scope: EvaluationScope) -> Any:
        value = left(scope)
        return right(scope) if is_true(value) else value

    return evaluate


def _or(node: nodes.Or, depth: int) -> Evaluator:
    left, right = _compile_all((node.left, node.right), depth)

    def evaluate(scope: EvaluationScope) -> Any:
        value = left(scope)
        return value if is_true(value) else right(scope)

    return evaluate


def _not(node: nodes.Not, depth: int) -> Evaluator:
    inner = compile_node(node.node, depth)
    return lambda scope: not is_true(inner(scope))


def _choice(node: nodes.CondExpr, depth: int) -> Evaluator:
    test, then = _compile_all((node.test, node.expr1), depth)
    otherwise = compile_node(node.expr2, depth) if node.expr2 else lambda _scope: MISSING
    return lambda scope: then(scope) if is_true(test(scope)) else otherwise(scope)


def _sign(node: nodes.Neg | nodes.Pos, depth: int) -> Evaluator:
    inner = compile_node(node.node, depth)
    if isinstance(node, nodes.Pos):
        return lambda scope: to_number(inner(scope))
    return lambda scope: to_number(-to_number(inner(scope)))


def _arithmetic(node: nodes.BinExpr, depth: int) -> Evaluator:
    left, right = _compile_all((node.left, node.right), depth)
    compute = _ARITHMETIC[type(node)]
    return lambda scope: to_number(compute(to_number(left(scope)), to_number(right(scope))))


def _add(node: nodes.Add, depth: int) -> Evaluator:
    left, right = _compile_all((node.left, node.right), depth)

    def evaluate(scope: EvaluationScope) -> Any:
        one, other = left(scope), right(scope)
        is_text = isinstance(one, str) and isinstance(other, str)
        if is_text or (isinstance(one, list) and isinstance(other, list)):
            scope.allowance.spend(1 + len(one) + len(other))
            return one + other
        return to_number(to_number(one) + to_number(other))

    return evaluate


def _concatenate(node: nodes.Concat, depth: int) -> Evaluator:
    parts = _compile_all(node.nodes, depth)
    return lambda scope: "".join([to_text(part(scope), scope.allowance) for part in parts])


def _call(node: nodes.Call, depth: int) -> Evaluator:
    if not isinstance(node.node, nodes.Getattr) or node.node.attr not in METHODS:
        compile_node(node.node, depth)  # an unknown name is the better error
        raise ValueError(f"an expression can call only {', '.join(sorted(METHODS))}")
    inner = compile_node(node.node.node, depth)
    bind = bind_method(node.node.attr, *_compile_arguments(node, depth))
    return lambda scope: bind(scope)(inner(scope))


def _compile_arguments(
    node: nodes.Call | nodes.Filter | nodes.Test, depth: int
) -> tuple[list[Evaluator], dict[str, Evaluator]]:
    if node.dyn_args is not None or node.dyn_kwargs is not None:
        raise ValueError("the arguments of a call cannot contain * or **")
    kwargs = {str(each.key): compile_node(each.value, depth) for each in node.kwargs}
    return list(_compile_all(node.args, depth)), kwargs


def _filter(node: nodes.Filter, depth: int) -> Evaluator:
    assert node.node is not None  # noqa: S101 - expressions have no filter blocks
    inner = compile_node(node.node, depth)
    args, kwargs = _compile_arguments(node, depth)
    bind = bind_filter(node, args, kwargs)
    return lambda scope: bind(scope)(inner(scope))


def _test(node: nodes.Test, depth: int) -> Evaluator:
    inner = compile_node(node.node, depth)
    bind = bind_predicate(node.name, *_compile_arguments(node, depth))
    return lambda scope: bind(scope)(inner(scope))


_COMPILERS: Mapping[type, Callable[[Any, int], Evaluator]] = {
    nodes.Const: _constant,
    nodes.Name: _name,
    nodes.List: _list,
    nodes.Tuple: _list,
    nodes.Dict: _object,
    nodes.Getattr: _attribute,
    nodes.Getitem: _item,
    nodes.Compare: _compare,
    nodes.And: _and,
    nodes.Or: _or,
    nodes.Not: _not,
    nodes.CondExpr: _choice,
    nodes.Neg: _sign,
    nodes.Pos: _sign,
    nodes.Add: _add,
    **dict.fromkeys(_ARITHMETIC, _arithmetic),
    nodes.Concat: _concatenate,
    nodes.Call: _call,
    nodes.Filter: _filter,
    nodes.Test: _test,
}
