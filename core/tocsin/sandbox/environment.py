"""Bounded Jinja2 environments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

import orjson
from jinja2 import nodes
from jinja2.compiler import CodeGenerator
from jinja2.environment import TemplateModule
from jinja2.exceptions import SecurityError, TemplateSyntaxError
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
from tocsin.sandbox.arguments import check_integer
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
_CYCLER_ATTRIBUTES = frozenset({"current", "next", "reset"})  # not the tuple of its items
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
MAX_DEPTH = 50
MAX_NODES = 10_000


class _Namespace(Namespace):
    # its content changes after it was paid for, so it is never written out
    __repr__ = object.__repr__


class BoundedEnvironment(ImmutableSandboxedEnvironment):
    """Environment whose templates and expressions only run inside an `Allowance`.

    Values are those of JSON. Filters and tests are those of Jinja that can be bounded.
    """

    code_generator_class: type[CodeGenerator] = MeteredCodeGenerator
    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "%", "**"})

    # called by compiled templates
    spend = staticmethod(spend)
    measured = staticmethod(measured)
    charge = staticmethod(charge)

    def __init__(self, **options: Any) -> None:
        # folding constants takes the cube of the depth of an expression
        super().__init__(optimized=False, **options)
        allowed = ("cycler", "dict", "joiner", "range")
        self.globals = {name: self.globals[name] for name in allowed}
        self.globals["namespace"] = _Namespace
        self.filters = dict(FILTERS)
        self.tests = dict(TESTS)

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        """Return the parsed text; TemplateSyntaxError if compiling it would take long."""
        tree = super()._parse(source, name, filename)
        level: list[nodes.Node] = [tree]
        depth = count = 0
        while level:
            depth, count = depth + 1, count + len(level)
            if depth > MAX_DEPTH or count > MAX_NODES:
                limit = f"{MAX_DEPTH} deep" if depth > MAX_DEPTH else f"{MAX_NODES:,} in number"
                message = f"the parts of a template may be at most {limit}"
                raise TemplateSyntaxError(message, level[0].lineno, name, filename)
            for node in level:
                if isinstance(node, nodes.Const):
                    _check_constant(node, name, filename)
            level = [child for node in level for child in node.iter_child_nodes()]
        return tree

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
        spend(1)
        if type(obj) is dict and attribute not in _DICT_METHODS:
            return obj[attribute] if attribute in obj else self.undefined(obj=obj, name=attribute)
        return super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Return an item or a member; undefined if there is none."""
        spend(1)
        return super().getitem(obj, argument)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Return whether templates may access it: a listed method, or Jinja's own object."""
        if isinstance(obj, Cycler):
            return attr in _CYCLER_ATTRIBUTES
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
        # `varargs` and `kwargs` hold their arguments, perhaps the same one many times
        is_collecting = isinstance(obj, Macro) and (obj.catch_varargs or obj.catch_kwargs)
        for value in (text, *args, *kwargs.values()):
            check_integer(value)
            (charge if is_collecting else measure)(value)
        if isinstance(text, str) and args and isinstance(args[0], str):
            spend(len(text) * len(args[0]) // 64)  # worst case of a search
        return charge(super().call(context, obj, *args, **kwargs))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Return the result of an operator, unless it could be large."""
        if operator == "**":
            raise SecurityError("** is not available here")
        if operator == "%" and isinstance(left, str):
            raise SecurityError("% only supports numbers here; use the filter `format` for text")
        check_integer(left)
        check_integer(right)
        if operator == "*":
            _pay_for_product(left, right)
        result = super().call_binop(context, operator, left, right)
        check_integer(result)
        return charge(result)


def _pay_for_product(left: Any, right: Any) -> None:
    if not isinstance(left, int):
        left, right = right, left
    if isinstance(left, int) and isinstance(right, str | list | tuple):
        spend(max(left, 0) * len(right))


def _check_constant(node: nodes.Const, name: str | None, filename: str | None) -> None:
    try:
        check_integer(node.value)
    except OverflowError as error:
        raise TemplateSyntaxError(str(error), node.lineno, name, filename) from None


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
