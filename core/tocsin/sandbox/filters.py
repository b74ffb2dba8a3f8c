"""Jinja's filters and tests that can be bounded, each charged for input and output.

Left out: `pprint`, `urlize`, `wordwrap` and `xmlattr`, some of which take quadratic time; `attr`,
which `[]` replaces; and `random`, since a retry must send the same content.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from types import MappingProxyType
from typing import Any

from jinja2 import filters, pass_eval_context, tests
from jinja2.nodes import EvalContext

from tocsin.sandbox.allowance import charge, measure, require_data, spend

# a width given as an argument, or with four digits
_WIDE = re.compile(r"%[^%a-zA-Z]*?(\*|\d{4}|\()")


def _paying(
    function: Any, cost: Callable[..., int] | None = None, *, is_writer: bool = False
) -> Callable[..., Any]:
    """Return `function`, charged for its arguments, its `cost` and its result.

    A writer converts its arguments to text.
    """
    own = 1 if hasattr(function, "jinja_pass_arg") else 0  # argument added by Jinja

    @wraps(function)
    def paid(*args: Any, **kwargs: Any) -> Any:
        given = args[own:]
        for value in (*given, *kwargs.values()):
            measure(value)
            if is_writer:
                require_data(value)
        spend(1 + (max(cost(*given, **kwargs), 0) if cost else 0))
        return charge(function(*args, **kwargs))

    return paid


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


# upper bounds of a call's cost, beyond the length of its arguments


def _format(value: object, *args: object) -> int:
    text = str(value)
    if _WIDE.search(text):
        raise ValueError("a format takes its values in order, with widths of three digits at most")
    return text.count("%") * (1_000 + max((len(str(each)) for each in args), default=0))


def _indent(text: object, width: int | str = 4, *_: object, **__: object) -> int:
    return len(str(text).splitlines()) * (len(width) if isinstance(width, str) else width)


def _replace(text: object, old: object, new: object, *_: object, **__: object) -> int:
    return str(text).count(str(old)) * len(str(new))


def _sum(_values: object, _attribute: object = None, start: object = 0, **_: object) -> int:
    if not isinstance(start, int | float):
        raise TypeError("sum adds up numbers")  # quadratic for lists
    return 0


def _trim(value: object, chars: object = "") -> int:
    return len(str(value)) * len(str(chars)) // 64


_COSTS: Mapping[str, Callable[..., int]] = MappingProxyType(
    {
        "batch": lambda _, linecount, *_rest, **_named: linecount,
        "center": lambda _, width=80: width,
        "format": _format,
        "indent": _indent,
        "replace": _replace,
        "round": lambda _, precision=0, *_rest, **_named: abs(precision) * 1_000,
        "slice": lambda _, slices, *_rest, **_named: slices,
        "sum": _sum,
        "tojson": lambda _, indent=None: (indent or 0) * 10_000,
        "trim": _trim,
    }
)
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

_WRITERS = frozenset(
    (  # noqa: SIM905 - compact
        "capitalize center e escape filesizeformat forceescape format indent lower replace safe "
        "shorten string striptags title trim truncate upper urlencode wordcount"
    ).split()
)

FILTERS = {
    name: _paying(_JINJAS[name], _COSTS.get(name), is_writer=name in _WRITERS) for name in _NAMES
}
TESTS = {name: _paying(tests.TESTS[name]) for name in tests.TESTS}
