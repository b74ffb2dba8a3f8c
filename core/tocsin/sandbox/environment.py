"""Bounded Jinja2 environments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

import orjson
from jinja2.compiler import CodeGenerator
from jinja2.environment import TemplateModule
from jinja2.exceptions import SecurityError
from jinja2.runtime import (
    BlockReference,
    Context,
    LoopContext,
    Macro,
    TemplateReference,
    Undefined,
    markup_join,
    str_join,
)
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Cycler, Joiner, Namespace

from tocsin.sandbox.allowance import charge, measure, measured, require_data, spend
from tocsin.sandbox.code_generator import MeteredCodeGenerator
from tocsin.sandbox.filters import FILTERS, TESTS

# bounded filters replace the other methods
_DICT_METHODS = frozenset({"get", "items", "keys", "values"})
_METHODS: Mapping[type, frozenset[str]] = MappingProxyType(
    {
        dict: _DICT_METHODS,
        str: frozenset(
            {
                "capitalize",
                "casefold",
                "endswith",
                "lower",
                "lstrip",
                "partition",
                "removeprefix",
                "removesuffix",
                "rstrip",
                "split",
                "splitlines",
                "startswith",
                "strip",
                "title",
                "upper",
            }
        ),
        tuple: frozenset({"grouper", "list"}),  # for results of the filter `groupby`
    }
)
_JINJAS_OWN = (
    BlockReference,
    Cycler,
    Joiner,
    LoopContext,
    Macro,
    Namespace,
    TemplateModule,
    TemplateReference,
    Undefined,
)
_LONGEST_PRODUCT = 65  # bits of both factors; numbers in JSON have 64 here


class _Namespace(Namespace):
    # its content changes after it was paid for, so it is never written out
    __repr__ = object.__repr__


class BoundedEnvironment(ImmutableSandboxedEnvironment):
    """Environment whose templates and expressions only run inside an `Allowance`.

    Values are those of JSON. Filters and tests are those of Jinja that can be bounded.
    """

    code_generator_class: type[CodeGenerator] = MeteredCodeGenerator
    intercepted_binops = frozenset({"+", "*", "**", "%"})

    # called by compiled templates
    spend = staticmethod(spend)
    measured = staticmethod(measured)
    charge = staticmethod(charge)

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        allowed = ("cycler", "dict", "joiner", "range")
        self.globals = {name: self.globals[name] for name in allowed}
        self.globals["namespace"] = _Namespace
        self.filters = dict(FILTERS)
        self.tests = dict(TESTS)

    @staticmethod
    def concat(parts: Iterable[str]) -> str:
        """Return the text of a macro, block or `set` block."""
        kept = []
        for part in parts:
            measure(part)
            kept.append(part)
        return "".join(kept)

    def concatenate(self, context: Context, parts: Iterable[Any]) -> str:
        """Return the result of `~`."""
        paid = [require_data(charge(part)) for part in parts]
        return markup_join(paid) if context.eval_ctx.autoescape else str_join(paid)

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Return a member of a mapping, or a permitted method; undefined otherwise."""
        if type(obj) is dict and attribute not in _DICT_METHODS:
            return obj[attribute] if attribute in obj else self.undefined(obj=obj, name=attribute)
        return super().getattr(obj, attribute)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Return whether templates may access it: a listed method, or Jinja's own object."""
        if isinstance(obj, _JINJAS_OWN):
            return super().is_safe_attribute(obj, attr, value)
        return any(isinstance(obj, kind) and attr in names for kind, names in _METHODS.items())

    def unsafe_undefined(self, obj: Any, attribute: str) -> Undefined:
        """Refuse immediately, even if undefined values are permitted."""
        raise SecurityError(f"{attribute!r} of a {type(obj).__name__} is not available here")

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:  # noqa: ARG002 - inherited
        """Return None: the method `format` is judged like any other."""
        return None

    def call(self, context: Context, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Return the result of a method, macro or global, charged like its arguments."""
        text = getattr(obj, "__self__", None)
        for value in (text, *args):
            measure(value)
        if isinstance(text, str) and args and isinstance(args[0], str):
            spend(len(text) * len(args[0]) // 64)  # worst case of a search
        return charge(super().call(context, obj, *args, **kwargs))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Return the result of an operator, unless it could be large."""
        if operator == "**":
            raise SecurityError("** is not available here")
        if operator == "%" and isinstance(left, str):
            raise SecurityError("% only takes numbers here; use the filter `format` for text")
        if operator == "*":
            _pay_for_product(left, right)
        return charge(super().call_binop(context, operator, left, right))


def _pay_for_product(left: Any, right: Any) -> None:
    if not isinstance(left, int):
        left, right = right, left
    if not isinstance(left, int):
        return
    if isinstance(right, str | list | tuple):
        spend(max(left, 0) * len(right))
    elif isinstance(right, int) and left.bit_length() + right.bit_length() > _LONGEST_PRODUCT:
        raise OverflowError("a product of integers may have at most 64 bits")


class RenderedText(str):
    """Text that a template has already rendered: by a macro, a block or a `set` block."""

    __slots__ = ()


class WritingEnvironment(BoundedEnvironment):
    """Distinguishes rendered text from input values."""

    # Jinja joins the parts of rendered values with this
    @staticmethod
    def concat(parts: Iterable[str]) -> str:
        """Return the parts as text that is not converted again."""
        return RenderedText(BoundedEnvironment.concat(parts))


def write_json(value: Any, default: Callable[[Any], Any]) -> str:
    """Return the value as JSON, and rendered text unchanged; `default` as in orjson."""
    if isinstance(value, RenderedText):
        return value
    text = orjson.dumps(value, default=default).decode()
    spend(len(text))
    return text
