"""Page `docs/plugin-authors/reference.md`, generated from the docstrings of the public API."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import timedelta
from textwrap import dedent
from types import ModuleType
from typing import Any, Generic

from pydantic.fields import FieldInfo

import tocsin
import tocsin.testing.conformance
from tocsin import PluginSettings
from tocsin.durations import format_duration
from tocsin.registry.settings_schema import list_settings

MODULES = (tocsin, tocsin.testing, tocsin.testing.conformance)
Function = (ast.FunctionDef, ast.AsyncFunctionDef)
HEAD = """\
# Reference

This page lists every name that a plugin can import. In a signature, parameters after `*` are
keyword-only, and `=...` marks a parameter that has a default. Every enumeration except `Capability`
and `Fault` has a class method `parse(word)`, which returns the member for a word in any letter
case. For an unknown word, `parse` raises a ValueError that lists the valid values.
"""
SEAMS = {
    "Providers": (
        "tocsin.hookspecs.provider",
        "tocsin.hookspecs.retirement",
        "tocsin.providers",
        "tocsin.mapping",
        "tocsin.model.incident",
        "tocsin.model.page",
        "tocsin.shapes",
    ),
    "Channels": (
        "tocsin.hookspecs.channel",
        "tocsin.hookspecs.message_actions",
        "tocsin.channels",
        "tocsin.conditions",
        "tocsin.model.contract",
        "tocsin.model.event",
    ),
    "Enrichers": ("tocsin.hookspecs.enricher", "tocsin.model.knowledge"),
    "Investigators": (
        "tocsin.hookspecs.investigator",
        "tocsin.model.investigation",
        "tocsin.model.report",
    ),
    "Commands, routes, console pages and metrics": ("tocsin.hookspecs.extensions",),
    "Errors": ("tocsin.errors",),
}
COMMON = "All plugins"
MARKER = """\
Marks a plugin's function as an implementation of the hook with the same name; see
[the hooks](seams.md#hooks).
"""


def page() -> str:
    """Return the page."""
    parts = [HEAD]
    for module in MODULES:
        if module is tocsin:
            parts += list(of_seams())
            continue
        parts.append(f"## `{module.__name__}`\n")
        parts += [entry(module, name) for name in sorted(module.__all__, key=str.casefold)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts)).rstrip() + "\n"


def of_seams() -> Iterator[str]:
    """Yield the entries of `tocsin` by the kind of plugin that uses them first."""
    grouped: dict[str, list[str]] = {title: [] for title in (*SEAMS, COMMON)}
    for name in sorted(tocsin.__all__, key=str.casefold):
        grouped[find_seam(name)].append(name)
    for title, names in grouped.items():
        listed = ", ".join(f"`{name}`" for name in names)
        yield f"## {title}\n\nFrom `tocsin`: {listed}.\n"
        yield from (entry(tocsin, name) for name in names)


def find_seam(name: str) -> str:
    """Return the section of a name, from the module that defines it."""
    place = getattr(getattr(tocsin, name), "__module__", "") or ""
    for title, modules in SEAMS.items():
        if any(place == module or place.startswith(f"{module}.") for module in modules):
            return title
    return COMMON


def entry(module: ModuleType, name: str) -> str:
    """Return the entry of one name."""
    value = getattr(module, name)
    if value is tocsin.hookimpl:
        return f"### `@{name}`\n\n{MARKER}"
    if inspect.isclass(value) and value is not Any:
        return "\n".join(of_class(name, value))
    if inspect.isfunction(value):
        [node] = ast.parse(inspect.getsource(value)).body
        return f"### `{signature(node, name)}`\n\n{words(value.__doc__)}\n"
    return f"### `{name}`\n\n{documented_value(module, name)}\n"


def of_class(name: str, kind: type) -> Iterator[str]:
    """Yield the parts of a class's entry."""
    bases = ", ".join(
        base.__name__
        for base in kind.__bases__
        if base not in (object, Generic) and not is_hidden(base)
    )
    yield f"### `{name}({bases})`\n" if bases else f"### `{name}`\n"
    if is_dataclass(kind):
        yield f"`{name}({', '.join(parameters(kind))})`\n"
    yield f"{words(kind.__doc__)}\n"
    yield from of_settings(kind)
    nodes = [definition(base) for base in kind.__mro__ if base is kind or is_hidden(base)]
    yield from of_members(nodes, has_table=issubclass(kind, PluginSettings))


def parameters(kind: Any) -> Iterator[str]:
    """Yield the constructor parameters of a dataclass; those with a default end in `=...`."""
    given = [field for field in fields(kind) if field.init]
    yield from (parameter(field) for field in given if not field.kw_only)
    by_name = [parameter(field) for field in given if field.kw_only]
    yield from ["*", *by_name] if by_name else []


def parameter(field: Field[Any]) -> str:
    required = field.default is MISSING and field.default_factory is MISSING
    return field.name if required else f"{field.name}=..."


def is_hidden(kind: type) -> bool:
    """Return whether a class is internal, and only visible as a base class."""
    ours = kind.__module__.startswith("tocsin.")
    return ours and not any(kind is getattr(module, kind.__name__, None) for module in MODULES)


def definition(kind: type) -> ast.ClassDef:
    [node] = ast.parse(dedent(inspect.getsource(kind))).body
    assert isinstance(node, ast.ClassDef)
    return node


def of_settings(kind: Any) -> Iterator[str]:
    """Yield the table of the settings that a class adds, in its own `Settings` or itself."""
    model = kind if issubclass(kind, PluginSettings) else vars(kind).get("Settings")
    if not inspect.isclass(model) or not model.model_fields:
        return
    owner, known = inherited(model)
    if owner:
        yield f"In addition to the settings of `{owner}`:\n"
    yield "| Setting | Type | Default | Description |\n|---|---|---|---|"
    for setting in list_settings(model, PluginSettings):
        field = model.model_fields[setting.name]
        if setting.name not in known or content(field) != content(known[setting.name]):
            default = f"`{setting.default}`" if setting.default else "none"
            default = "required" if setting.required else default
            kind_of = f"{setting.type}{limits(field)}"
            yield f"| `{setting.name}` | {kind_of} | {default} | {setting.description} |"
    yield ""


def inherited(model: type[PluginSettings]) -> tuple[str, dict[str, FieldInfo]]:
    """Return the nearest public class whose settings a model extends, and these settings."""
    names = ((name, getattr(module, name)) for module in MODULES for name in module.__all__)
    owners = {
        value if issubclass(value, PluginSettings) else vars(value).get("Settings"): name
        for name, value in names
        if inspect.isclass(value) and value is not PluginSettings
    }
    for base in model.__mro__[1:]:
        if base in owners:
            return owners[base], base.model_fields
    return "", {}


def content(field: FieldInfo) -> tuple[Any, ...]:
    """Return what the table shows of a field."""
    return field.annotation, field.default, field.description, repr(field.metadata)


SIGNS = (("gt", "more than"), ("ge", "at least"), ("lt", "less than"), ("le", "at most"))


def limits(field: FieldInfo) -> str:
    """Return the limits of a duration, which its schema does not show."""
    told = ((words, getattr(mark, sign, None)) for mark in field.metadata for sign, words in SIGNS)
    lengths = ((words, length) for words, length in told if isinstance(length, timedelta))
    return "".join(f", {words} {format_duration(length)}" for words, length in lengths)


def of_members(nodes: Sequence[ast.ClassDef], *, has_table: bool) -> Iterator[str]:
    """Yield a class's attributes, then its methods, in source order."""
    holds = dict(pair for node in reversed(nodes) for pair in attributes(node, has_table=has_table))
    if holds:
        yield "\n".join(holds.values()) + "\n"
    methods = {
        member.name: member
        for node in reversed(nodes)
        for member in node.body
        if isinstance(member, Function) and is_public(member)
    }
    for name, member in methods.items():
        if name == "parse" and "word" in ast.unparse(member.args):
            continue  # the head of the page describes it
        yield f"#### `{signature(member, name)}`\n"
        yield f"{marks(member)}{words(ast.get_docstring(member))}\n"


def attributes(node: ast.ClassDef, *, has_table: bool) -> Iterator[tuple[str, str]]:
    """Yield each attribute; for a class of settings, the table has those with a `Field`."""
    for member, following in zip(node.body, [*node.body[1:], None], strict=True):
        text = told(following)
        match member:
            case ast.AnnAssign(ast.Name(id=name), annotation, ast.Call(func=ast.Name(id="Field"))):
                if not has_table:
                    yield name, f"- `{name}: {ast.unparse(annotation)}`{text}"
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                if not name.startswith(("_", "model_")) and (name != "settings" or text):
                    yield name, f"- `{ast.unparse(member)}`{text}"


def told(following: ast.stmt | None) -> str:
    match following:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return f": {words(text)}"
    return ""


def words(text: str | None) -> str:
    """Return a docstring as Markdown, with `<name>` escaped."""
    parts = inspect.cleandoc(text or "").replace("\n::\n", "\n").split("`")
    return "`".join(
        part if index % 2 else part.replace("<", "\\<") for index, part in enumerate(parts)
    )


def is_public(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return not function.name.startswith(("_", "test_")) or function.name == "__init__"


def marks(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    named = {"abstractmethod": "Abstract. ", "property": "Property. "}
    marked = {**named, "cached_property": named["property"]}
    names = (ast.unparse(decorator) for decorator in function.decorator_list)
    return "".join(marked.get(name, "") for name in names)


def signature(node: Any, name: str) -> str:
    """Return the signature as in the source."""
    coroutine = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    returned = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{coroutine}{name}({ast.unparse(node.args)}){returned}"


def documented_value(module: ModuleType, name: str) -> str:
    """Return the text below a value's assignment, from the module that defines it."""
    for source in {
        module for module in sys.modules.values() if module.__name__.startswith("tocsin")
    }:
        if getattr(source, name, None) is getattr(module, name) and hasattr(source, "__file__"):
            text = told_below(ast.parse(inspect.getsource(source)), name)
            if text is not None:
                return text
    raise LookupError(f"{name} has no documentation")


def told_below(tree: ast.Module, name: str) -> str | None:
    for statement, following in zip(tree.body, tree.body[1:], strict=False):
        match statement, following:
            case (
                ast.Assign(targets=[ast.Name(id=found)]),
                ast.Expr(value=ast.Constant(value=str(text))),
            ) if found == name:
                return words(text)
    return None
