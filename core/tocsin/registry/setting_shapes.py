"""What the value of a setting is made of, for whoever asks for it with a form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tocsin.fields import PluginSettings
from tocsin.registry.settings_schema import settings_schema

_NULL = {"type": "null"}


class Shape(StrEnum):
    """What a value is made of."""

    TEXT = "text"
    NUMBER = "number"
    FLAG = "flag"
    CHOICE = "choice"
    CHOICES = "choices"
    """Any number of the choices."""
    LIST = "list"
    """Texts, in their order."""
    TABLE = "table"
    """Texts by their names."""
    ANYTHING = "anything"
    """What JSON can hold."""


_PLAIN = {
    "string": Shape.TEXT,
    "integer": Shape.NUMBER,
    "number": Shape.NUMBER,
    "boolean": Shape.FLAG,
}


@dataclass(frozen=True, slots=True)
class Shaped:
    """The shape of one setting's value."""

    shape: Shape
    choices: tuple[str, ...] = ()


def shapes_of(model: type[PluginSettings]) -> Mapping[str, Shaped]:
    """Return the shape of each setting, by the name that operators write."""
    schema = settings_schema(model)
    definitions = schema.get("$defs", {})
    properties: Mapping[str, Any] = schema.get("properties", {})
    return {name: _shaped(it, definitions) for name, it in properties.items()}


def _shaped(written: Any, definitions: Mapping[str, Any]) -> Shaped:
    schema = _resolved(written, definitions)
    if choices := _choices(schema):
        return Shaped(Shape.CHOICE, choices)
    match schema.get("type"):
        case "array":
            return _listed(_resolved(schema.get("items"), definitions))
        case "object":
            member = _resolved(schema.get("additionalProperties"), definitions)
            return Shaped(Shape.TABLE if member.get("type") == "string" else Shape.ANYTHING)
        case kind:
            return Shaped(_PLAIN.get(str(kind), Shape.ANYTHING))


def _listed(member: Mapping[str, Any]) -> Shaped:
    if choices := _choices(member):
        return Shaped(Shape.CHOICES, choices)
    return Shaped(Shape.LIST if member.get("type") == "string" else Shape.ANYTHING)


def _choices(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the words that a value is one of; nothing where it may be another, or is no word."""
    choices = schema.get("enum", [])
    return tuple(choices) if all(isinstance(it, str) for it in choices) else ()


def _resolved(schema: Any, definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of a value that is there; `{}` where that may be of several kinds."""
    if not isinstance(schema, Mapping):  # `true` stands for anything
        return {}
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        others = {key: value for key, value in definitions.items() if key != name}  # may be within
        return _resolved(definitions.get(name), others)
    if "anyOf" in schema:
        kinds = [it for it in schema["anyOf"] if it != _NULL]
        return _resolved(kinds[0], definitions) if len(kinds) == 1 else {}
    return schema
