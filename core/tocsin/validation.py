"""Explanations of validation errors for the person who can correct them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr, ValidationError
from pydantic.fields import FieldInfo

from tocsin.durations import format_duration

_SHOWN = 60
_SEVERAL_VALUES = ""  # what is wrong is not one value, and what would be right says all
_UNION_MEMBER = re.compile(r"(str-|int-)?enum\[|literal\[")  # last part of pydantic's path
_KEY = "[key]"  # the last part of pydantic's path where the key of a table is wrong


@dataclass(frozen=True, slots=True)
class Mistake:
    """One wrong value: its path of keys, what was found there, and what would be right.

    `found` is empty if the mistake is how several values combine.
    """

    path: tuple[str, ...]
    found: str
    expected: str

    @property
    def words(self) -> str:
        """What was found, if that is known, and what would be right."""
        return "; ".join(filter(None, (self.found, self.expected)))


def list_choices(names: Collection[str], otherwise: str) -> str:
    """Return ``use one of: a, b``, or what to do if there are no names."""
    return f"use one of: {', '.join(names)}" if names else otherwise


def suggest_nearest(word: str, known: Sequence[str], cutoff: float = 0.6) -> str:
    """Return ``; did you mean 'x'?`` for the most similar known word, or nothing.

    `cutoff` is the least similarity, from 0 to 1, as `difflib` measures it.
    """
    nearest = find_nearest(word, known, cutoff)
    return "" if nearest is None else f"; did you mean {nearest!r}?"


def suggest_provider(word: str, known: Collection[str]) -> str:
    """Return the known providers and the one most similar to an unknown one, or what to do."""
    names = list(known)
    return f"{list_choices(names, 'configure a provider first')}{suggest_nearest(word, names)}"


def find_nearest(word: str, known: Sequence[str], cutoff: float = 0.6) -> str | None:
    """Return the most similar known word, None if no word is similar."""
    matches = get_close_matches(word, known, n=1, cutoff=cutoff)
    return matches[0] if matches else None


NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$"
"""Permitted names of providers, destinations, enrichers and schedules."""
PATTERN_RULES = {
    NAME_PATTERN: "use up to 100 letters, digits, - and _, and start with a letter or a digit",
    r"^https://\S+$": "use an address that starts with https:// and contains no spaces",
}
"""The rules of patterns in words."""
_SPACE, _DELETE = 0x20, "\x7f"


def explain_errors(
    error: ValidationError, model: type[BaseModel], written: Mapping[str, Any] | None = None
) -> Iterator[Mistake]:
    """Yield every mistake in `error`, which validating against `model` raised.

    Values are truncated, and secrets shown by their reference. With `written`, what an operator
    wrote is shown instead of parsed values. Regular expressions are never shown.
    """
    found = error.errors(include_url=False, include_context=True)
    details = list(_join_choices([dict(detail) for detail in found]))
    for detail in details if written is not None else ():
        _restore_written(detail, written or {})
    wrong_keys = {detail["loc"][:-1] for detail in details if detail["loc"][-1:] == (_KEY,)}
    for detail in details:
        path = tuple(map(str, detail["loc"]))
        if path[-1:] == (_KEY,):
            path = path[:-1]
        elif any(detail["loc"][:length] in wrong_keys for length in range(len(path) + 1)):
            continue  # below a wrong key
        elif detail["type"] == "too_short" and _has_nested_error(details, detail["loc"]):
            continue  # wrong items were not counted
        yield Mistake(path, *_describe(detail, model))


def _join_choices(details: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the details; one for a value that is in none of several enumerations."""
    joined: dict[tuple[object, ...], dict[str, Any]] = {}
    for detail in details:
        *place, part = detail["loc"] or ("",)
        if detail["type"] not in ("enum", "literal_error") or not _UNION_MEMBER.match(str(part)):
            yield detail
        elif (choices := joined.get(tuple(place))) is not None:
            expected = f"{choices['ctx']['expected']} or {detail['ctx']['expected']}"
            choices["ctx"] = {
                "expected": expected.replace(" or ", ", ", expected.count(" or ") - 1)
            }
        else:
            joined[tuple(place)] = {**detail, "type": "enum", "loc": tuple(place)}
    yield from joined.values()


def _has_nested_error(details: Sequence[Mapping[str, Any]], place: tuple[object, ...]) -> bool:
    """Return whether an item of the list is wrong too."""
    return any(
        len(detail["loc"]) > len(place) and detail["loc"][: len(place)] == place
        for detail in details
    )


def _restore_written(detail: dict[str, Any], written: Mapping[str, Any]) -> None:
    """Show a duration as written."""
    if isinstance(detail.get("input"), timedelta):
        found: Any = written
        for part in detail["loc"]:
            found = found.get(part) if isinstance(found, Mapping) else None
        detail["input"] = detail["input"] if found is None else found


def _describe(detail: dict[str, Any], model: type[BaseModel]) -> tuple[str, str]:
    match detail["type"]:
        case "missing":
            return "missing", _describe_field(detail["loc"], model)
        case "extra_forbidden":
            name = str(detail["loc"][-1])
            known = list(_sibling_fields(detail["loc"], model))
            valid = f"; valid keys: {', '.join(sorted(known))}" if known else ""
            return "unknown key", f"remove it{suggest_nearest(name, known) or valid}"
        case "string_pattern_mismatch":
            return _describe_input(detail), _describe_pattern(detail, model)
        case "secret":
            return detail["ctx"]["found"], detail["ctx"]["expected"]
        case "enum":
            return _describe_input(
                detail
            ), f"use one of: {detail['ctx']['expected']}" + _suggest_member(detail)
        case kind:
            expected = _PLAIN.get(kind) or _describe_bound(detail, model)
            return _describe_input(detail), expected or _describe_expected(detail)


# Messages of pydantic about types, for authors of TOML or JSON
_PLAIN = {
    "tuple_type": 'use a list, such as ["one", "two"]',
    "list_type": 'use a list, such as ["one", "two"]',
    "dict_type": "use a table of names and values",
    "model_type": "use a table of names and values",
    "model_attributes_type": "use an object",
    "string_type": "use text in quotes",
    "int_type": "use a whole number",
    "int_parsing": "use a whole number",
    "int_from_float": "use a whole number",
    "float_type": "use a number",
    "float_parsing": "use a number",
    "bool_type": "use true or false",
    "bool_parsing": "use true or false",
    "time_delta_type": "use a number with a unit in quotes, such as '30s'",
    "too_short": "add at least one item",
}


_BOUNDS = {"greater_than_equal": ("ge", "least"), "less_than_equal": ("le", "most")}


def _describe_bound(detail: Mapping[str, Any], model: type[BaseModel]) -> str:
    """Return the bound of a duration in words; empty for other mistakes."""
    if detail["type"] not in _BOUNDS:
        return ""
    name, word = _BOUNDS[detail["type"]]
    field = _sibling_fields(detail["loc"], model).get(str(detail["loc"][-1]))
    for mark in _iter_marks(field):
        if isinstance(bound := getattr(mark, name, None), timedelta):
            return f"use at {word} {format_duration(bound)}"
    return ""


def _iter_marks(field: FieldInfo | None) -> Iterator[object]:
    """Yield what annotates a field or a member of its union, such as in `Days | None`."""
    if field is None:
        return
    yield from field.metadata
    for member in get_args(field.annotation):
        for mark in getattr(member, "__metadata__", ()):
            yield from mark.metadata if isinstance(mark, FieldInfo) else (mark,)


def _describe_pattern(detail: Mapping[str, Any], model: type[BaseModel]) -> str:
    """Return the rule behind a pattern in words; a pattern itself helps few readers."""
    text = str(detail.get("input"))
    if "\x00" in text:
        return "remove the NUL character"
    if any(ord(character) < _SPACE or character == _DELETE for character in text):
        return "remove line breaks and other control characters"
    if (rule := PATTERN_RULES.get(detail["ctx"]["pattern"])) is not None:
        return rule
    names = [name for name in detail["loc"] if isinstance(name, str)]
    field = _sibling_fields(names, model).get(names[-1]) if names else None
    if field is not None and field.description:
        return f"expected: {field.description}"
    return "use a value in the required format"


def _suggest_member(detail: dict[str, Any]) -> str:
    known = [
        word.strip("'") for word in detail["ctx"]["expected"].replace(" or ", ", ").split(", ")
    ]
    return suggest_nearest(str(detail.get("input")), known)


def _describe_field(path: Sequence[object], model: type[BaseModel]) -> str:
    field = _sibling_fields(path, model).get(str(path[-1]))
    return f"expected: {field.description}" if field and field.description else "set a value"


def _sibling_fields(path: Sequence[object], model: type[BaseModel]) -> Mapping[str, FieldInfo]:
    """Return the fields beside the last one of a path; empty if they are unknown."""
    kind: Any = model
    for part in path[:-1]:
        kind = _unwrap(_member_type(kind, str(part)))
    return kind.model_fields if _is_model(kind) else {}


def _member_type(kind: Any, name: str) -> Any:
    """Return the type of a field, or of the items of a table or list; None for others."""
    if _is_model(kind):
        field = kind.model_fields.get(name)
        return field and field.annotation
    held = [arg for arg in get_args(kind) if arg is not Ellipsis]
    return held[-1] if held else None


def _unwrap(kind: Any) -> Any:
    """Return a type without what annotates it, and without `| None`."""
    parts = [arg for arg in get_args(kind) if arg is not NoneType]
    if get_origin(kind) is Annotated:
        return _unwrap(parts[0])
    is_optional = get_origin(kind) in (Union, UnionType) and len(parts) == 1
    return _unwrap(parts[0]) if is_optional else kind


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _describe_input(detail: dict[str, Any]) -> str:
    value = detail.get("input")
    if isinstance(value, SecretStr):
        return "found an invalid secret"
    if isinstance(value, list | tuple):
        return "found a list" if value else "found an empty list"
    if isinstance(value, dict | BaseModel):
        return "found names and values" if detail["type"].endswith("_type") else _SEVERAL_VALUES
    if isinstance(value, timedelta):
        return f"found {value.total_seconds():g}s"
    text = repr(value.value if isinstance(value, Enum) else value)
    return f"found {text if len(text) <= _SHOWN else text[:_SHOWN] + '…'}"


def _describe_expected(detail: dict[str, Any]) -> str:
    message = str(detail["msg"])
    message = message.removeprefix("Value error, ").removeprefix("Assertion failed, ")
    return message[:1].lower() + message[1:]
