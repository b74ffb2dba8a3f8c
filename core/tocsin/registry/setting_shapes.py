"""What the value of a setting is made of, for whoever asks for it with a form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tocsin.fields import PluginSettings
from tocsin.registry.settings_schema import settings_schema

_NULL = {"type": "null"}


class SettingShape(StrEnum):
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
    "string": SettingShape.TEXT,
    "integer": SettingShape.NUMBER,
    "number": SettingShape.NUMBER,
    "boolean": SettingShape.FLAG,
}


@dataclass(frozen=True, slots=True)
class ShapedSetting:
    """The shape of one setting's value."""

    shape: SettingShape
    choices: tuple[str, ...] = ()


def list_setting_shapes(model: type[PluginSettings]) -> Mapping[str, ShapedSetting]:
    """Return the shape of each setting, by the name that operators write."""
    schema = settings_schema(model)
    definitions = schema.get("$defs", {})
    properties: Mapping[str, Any] = schema.get("properties", {})
    return {name: _find_shape(it, definitions) for name, it in properties.items()}


def _find_shape(written: Any, definitions: Mapping[str, Any]) -> ShapedSetting:
    schema = _resolve_schema(written, definitions)
    if choices := _list_choices(schema):
        return ShapedSetting(SettingShape.CHOICE, choices)
    match schema.get("type"):
        case "array":
            return _find_list_shape(_resolve_schema(schema.get("items"), definitions))
        case "object":
            member = _resolve_schema(schema.get("additionalProperties"), definitions)
            return ShapedSetting(
                SettingShape.TABLE if member.get("type") == "string" else SettingShape.ANYTHING
            )
        case kind:
            return ShapedSetting(_PLAIN.get(str(kind), SettingShape.ANYTHING))


def _find_list_shape(member: Mapping[str, Any]) -> ShapedSetting:
    if choices := _list_choices(member):
        return ShapedSetting(SettingShape.CHOICES, choices)
    return ShapedSetting(
        SettingShape.LIST if member.get("type") == "string" else SettingShape.ANYTHING
    )


def _list_choices(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the words that a value is one of; nothing where it may be another, or is no word."""
    choices = schema.get("enum", [])
    return tuple(choices) if all(isinstance(it, str) for it in choices) else ()


def _resolve_schema(schema: Any, definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of a value that is there; `{}` where that may be of several kinds."""
    if not isinstance(schema, Mapping):  # `true` stands for anything
        return {}
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        others = {key: value for key, value in definitions.items() if key != name}  # may be within
        return _resolve_schema(definitions.get(name), others)
    if "anyOf" in schema:
        kinds = [it for it in schema["anyOf"] if it != _NULL]
        return _resolve_schema(kinds[0], definitions) if len(kinds) == 1 else {}
    return schema
