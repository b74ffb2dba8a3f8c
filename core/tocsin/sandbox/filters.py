"""Jinja's filters and tests that can be bounded: checked, and charged for input and output.

Left out: `pprint`, `urlize`, `wordwrap` and `xmlattr`, some of which take quadratic time; `attr`,
which `[]` replaces; and `random`, since a retry must send the same content.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from inspect import signature
from typing import Any

from jinja2 import filters, pass_eval_context, tests
from jinja2.nodes import EvalContext

from tocsin.sandbox.allowance import charge, measure, require_data, spend
from tocsin.sandbox.arguments import (
    MEMBER_OPTIONS,
    PARAMETERS,
    check_integer,
    check_path,
    check_value,
)
from tocsin.sandbox.costs import COSTS

_TAKES_ANYTHING = frozenset({"callable", "d", "default", "defined", "sameas", "undefined"})
_WRITERS = frozenset(
    (  # noqa: SIM905 - compact
        "capitalize center e escape filesizeformat forceescape format indent lower replace safe "
        "shorten string striptags title trim truncate upper urlencode wordcount"
    ).split()
)
"""Filters that convert their arguments to text."""
_PASSED_BY_JINJA = frozenset({"context", "env", "environment", "eval_ctx"})
_WITHOUT_FILL = 2  # arguments of `batch` and `slice`
_APPLIES_OTHERS = frozenset({"map", "reject", "rejectattr", "select", "selectattr"})


def _guard_filter(name: str, function: Any) -> Callable[..., Any]:
    """Return a filter that checks its arguments, and pays for them, its cost and its result."""
    own = 1 if hasattr(function, "jinja_pass_arg") else 0  # argument added by Jinja
    checks = PARAMETERS.get(name, {})
    names = list_parameters(function)
    cost = COSTS.get(name)

    @wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        given = args[own:]
        _admit(name, (*given, *kwargs.values()))
        for parameter, value in (*zip(names, given[1:], strict=False), *kwargs.items()):
            if parameter in checks:
                checks[parameter](value)
        if name in _WRITERS:
            for value in (*given, *kwargs.values()):
                if type(value) is not str:
                    require_data(value)
        spend(1)
        if cost is not None:
            spend(cost(*given, **kwargs))
        return _settle(
            function(*args, **kwargs), repeats="fill_with" in kwargs or len(given) > _WITHOUT_FILL
        )

    return guarded


def list_parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of a filter's parameters after the value."""
    named = signature(function).parameters.values()
    return tuple(each.name for each in named if each.name not in _PASSED_BY_JINJA)[1:]


def _guard_application(name: str, function: Any) -> Callable[..., Any]:
    """Return a filter that applies another filter, a test or a path to each item."""
    path_first = name.endswith("attr")

    @wraps(function)
    def guarded(context: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
        _admit(name, (value, *args, *kwargs.values()))
        if path_first and args:
            check_path(args[0])
        if name == "map" and not args:
            for parameter, option in kwargs.items():
                MEMBER_OPTIONS.get(parameter, check_value)(option)
        spend(1)
        return _settle(function(context, value, *args, **kwargs), repeats="default" in kwargs)

    return guarded


def _admit(name: str, values: Iterable[Any]) -> None:
    """Check the types of all arguments, and pay for reading them."""
    for value in values:
        if type(value) is not str and name not in _TAKES_ANYTHING:
            check_value(value)
        measure(value)


def _settle(result: Any, *, repeats: bool) -> Any:
    """Return a result that was paid for; what would be computed later is computed now.

    Items that an iterator passes on or makes one by one are paid for already. One that `repeats` an
    argument is paid for in full.
    """
    if isinstance(result, Iterator):
        result = list(_pay_items(result))
        return charge(result) if repeats else result
    check_integer(result)
    return charge(result)


def _pay_items(items: Iterator[Any]) -> Iterator[Any]:
    for item in items:
        spend(1)
        yield item


def _guard_test(name: str, function: Any) -> Callable[..., Any]:
    own = 1 if hasattr(function, "jinja_pass_arg") else 0

    @wraps(function)
    def guarded(*args: Any) -> Any:
        _admit(name, args[own:])
        spend(1)
        return function(*args)

    return guarded


@pass_eval_context
def _join(
    context: EvalContext, value: Iterable[Any], d: str = "", attribute: str | None = None
) -> str:
    """Join as Jinja does, after paying for the result."""
    items = [require_data(charge(item)) for item in value]
    spend(len(items) * len(str(require_data(d))))
    return filters.sync_do_join(context, items, d, attribute)


def _tojson(value: object, indent: int | None = None) -> str:
    """Return JSON as plain text: Jinja's own counts as markup, even inside quotes."""
    return json.dumps(value, ensure_ascii=False, indent=indent)


def shorten(value: object, limit: int, link: str = "") -> str:
    """Shorten a text to a number of characters, with a remark and a link to the full text.

    If even the remark does not fit, the text is cut without it.
    """
    text = str(value)
    if len(text) <= limit:
        return text
    remark = f" … [shortened: {link}]" if link else "…"
    kept = limit - len(remark)
    return text[:kept] + remark if kept > 0 else text[: max(limit, 0)]


_NAMES = (  # noqa: SIM905 - compact
    "abs batch capitalize center count d default dictsort e escape filesizeformat first float "
    "forceescape format groupby indent int items join last length list lower map max min reject "
    "rejectattr replace reverse round safe select selectattr shorten slice sort string striptags "
    "sum title tojson trim truncate unique upper urlencode wordcount"
).split()
_JINJAS: Mapping[str, Any] = {
    **filters.FILTERS,
    "join": _join,
    "shorten": shorten,
    "tojson": _tojson,
}

FILTERS = {
    name: (_guard_application if name in _APPLIES_OTHERS else _guard_filter)(name, _JINJAS[name])
    for name in _NAMES
}
TESTS = {name: _guard_test(name, test) for name, test in tests.TESTS.items()}
