"""Turns what pydantic found wrong into words for the person who can mend it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from enum import Enum
from typing import Any

from pydantic import BaseModel, SecretStr, ValidationError

_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Mistake:
    """One wrong value: its path of keys, what was found there, and what would be right."""

    path: tuple[str, ...]
    found: str
    expected: str


def nearest(word: str, known: Sequence[str]) -> str:
    """Return ``; did you mean 'x'?`` for the most similar known word, or nothing."""
    matches = get_close_matches(word, known, n=1)
    return f"; did you mean {matches[0]!r}?" if matches else ""


def explain(error: ValidationError, model: type[BaseModel]) -> Iterator[Mistake]:
    """Yield every mistake in `error`, which validating against `model` raised.

    What was found is shown, cut short; of a secret only what its reference says.
    """
    for detail in error.errors(include_url=False, include_context=True):
        path = tuple(str(part) for part in detail["loc"])
        yield Mistake(path, *_words(dict(detail), model))


def _words(detail: dict[str, Any], model: type[BaseModel]) -> tuple[str, str]:
    match detail["type"]:
        case "missing":
            return "missing", _purpose(detail["loc"], model)
        case "extra_forbidden":
            name = str(detail["loc"][-1])
            known = list(_fields_at(detail["loc"], model))
            valid = f"; known here: {', '.join(sorted(known))}" if known else ""
            return "unknown key", f"remove it{nearest(name, known) or valid}"
        case "secret":
            return detail["ctx"]["found"], detail["ctx"]["expected"]
        case "enum":
            return _shown(detail), f"give one of: {detail['ctx']['expected']}" + _near(detail)
        case kind:
            return _shown(detail), _PLAIN.get(kind) or _expected(detail)


# What pydantic says of types, in words for someone who writes TOML or JSON
_PLAIN = {
    "tuple_type": 'give a list, such as ["one", "two"]',
    "list_type": 'give a list, such as ["one", "two"]',
    "dict_type": "give a table of names and values",
    "model_type": "give a table of names and values",
    "model_attributes_type": "give an object",
    "string_type": "give text in quotes",
    "int_type": "give a whole number",
    "int_parsing": "give a whole number",
    "int_from_float": "give a whole number",
    "bool_type": "give true or false",
    "bool_parsing": "give true or false",
    "time_delta_type": "give a number with a unit in quotes, such as '30s'",
    "too_short": "give at least one",
}


def _near(detail: dict[str, Any]) -> str:
    known = [
        word.strip("'") for word in detail["ctx"]["expected"].replace(" or ", ", ").split(", ")
    ]
    return nearest(str(detail.get("input")), known)


def _purpose(path: Sequence[object], model: type[BaseModel]) -> str:
    field = model.model_fields.get(str(path[0])) if len(path) == 1 else None
    return f"it says: {field.description}" if field and field.description else "give it a value"


def _fields_at(path: Sequence[object], model: type[BaseModel]) -> Iterator[str]:
    if len(path) == 1:
        yield from model.model_fields


def _shown(detail: dict[str, Any]) -> str:
    value = detail.get("input")
    if isinstance(value, SecretStr):
        return "found a secret that is not one"
    if isinstance(value, list | tuple):
        return "found a list"
    if isinstance(value, dict | BaseModel):
        return "found several values"
    if isinstance(value, timedelta):
        return f"found {value.total_seconds():g}s"
    text = repr(value.value if isinstance(value, Enum) else value)
    return f"found {text if len(text) <= _SHOWN else text[:_SHOWN] + '…'}"


def _expected(detail: dict[str, Any]) -> str:
    message = str(detail["msg"])
    message = message.removeprefix("Value error, ").removeprefix("Assertion failed, ")
    return message[:1].lower() + message[1:]
