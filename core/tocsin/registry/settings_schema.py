"""Schemas, descriptions and form shapes of plugin settings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, ClassVar

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind

from tocsin.durations import format_duration
from tocsin.fields import PluginSettings

_NULL = {"type": "null"}
_Alternative = tuple[Mapping[str, Any], Mapping[str, Any]]
_SECRET = 'secret: { env = "NAME" } or { file = "path" }'  # noqa: S105 - describes the syntax
_WORDS = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "object": "table",
}
_PLURALS = {
    "one of": "any of",
    "secret": "secrets",
    "whole number": "whole numbers",
    "number": "numbers",
    "list": "lists",
    "table": "tables",
}
_BOUNDS = {
    "minimum": "at least",
    "exclusiveMinimum": "more than",
    "maximum": "at most",
    "exclusiveMaximum": "less than",
}


@dataclass(frozen=True, slots=True)
class SettingDescription:
    """One key of a table [providers.<name>] or [destinations.<name>]."""

    name: str
    type: str
    required: bool
    default: str | None
    """As written in TOML; None without a default."""
    secret: bool
    common: bool
    """Whether every provider, or every destination, has it."""
    description: str


class _Lenient(GenerateJsonSchema):
    """Leaves out types without JSON Schema, and titles that only repeat field names."""

    ignored_warning_kinds: ClassVar[set[JsonSchemaWarningKind]] = {  # type: ignore[misc]
        "skipped-choice",
        "non-serializable-default",
    }

    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002 - its signature
        return False

    def handle_invalid_for_json_schema(self, schema: object, error_info: str) -> dict[str, Any]:  # noqa: ARG002
        return {}


def settings_schema(model: type[PluginSettings]) -> dict[str, Any]:
    """Return the JSON Schema of a plugin's settings; types without one become `{}`."""
    return model.model_json_schema(schema_generator=_Lenient)


def list_settings(
    model: type[PluginSettings], base: type[PluginSettings]
) -> Iterator[SettingDescription]:
    """Yield the settings of `model`: first its own, then those of `base`."""
    schema = settings_schema(model)
    names = sorted(model.model_fields, key=lambda name: name in base.model_fields)
    for name in names:
        field = model.model_fields[name]
        secret = name in model.secret_fields()
        yield SettingDescription(
            name=name,
            type=_describe_type(_property(schema, name, field), schema.get("$defs", {})),
            required=field.is_required(),
            default=_describe_default(field),
            secret=secret,
            common=name in base.model_fields,
            description=field.description or "",
        )


def _property(schema: Mapping[str, Any], name: str, field: FieldInfo) -> Any:
    """Return the schema of a field, by its alias if it has one."""
    properties = schema.get("properties", {})
    return properties.get(name, properties.get(field.alias, {}))


def _list_alternatives(schema: Any, definitions: Mapping[str, Any]) -> list[_Alternative]:
    """Return the plain schemas of a present value, each with the definitions for its members."""
    if not isinstance(schema, Mapping):  # `true` permits anything
        return [({}, definitions)]
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        # a definition that refers to itself ends here
        others = {key: value for key, value in definitions.items() if key != name}
        return _list_alternatives(definitions.get(name, {}), others)
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema and schema.get("format") != "password":
            return [
                alternative
                for option in schema[several]
                if option != _NULL
                for alternative in _list_alternatives(option, definitions)
            ]
    return [(schema, definitions)]


def _describe_type(schema: Any, definitions: Mapping[str, Any], *, in_table: bool = False) -> str:
    alternatives = _list_alternatives(schema, definitions)
    described = (_describe_plain_type(*each, in_table=in_table) for each in alternatives)
    return " or ".join(dict.fromkeys(described))


def _describe_plain_type(
    schema: Mapping[str, Any], definitions: Mapping[str, Any], *, in_table: bool
) -> str:
    """Return the description of one alternative; of a table in a table, without its members."""
    if schema.get("format") == "password":
        return _SECRET
    if "enum" in schema or "const" in schema:
        values = [_format_toml(value) for value in schema.get("enum", [schema.get("const")])]
        return f"one of {', '.join(values)}" if len(values) > 1 else values[0]
    kind = schema.get("type")
    if kind == "array":
        items = schema.get("items", {})
        return f"list of {_pluralize(_describe_type(items, definitions, in_table=in_table))}"
    members = schema.get("additionalProperties")
    if kind == "object" and isinstance(members, Mapping) and not in_table:
        return f"table of {_pluralize(_describe_type(members, definitions, in_table=True))}"
    limits = (f", {words} {schema[name]}" for name, words in _BOUNDS.items() if name in schema)
    example = f" such as {_format_toml(schema['examples'][0])}" if schema.get("examples") else ""
    return "".join((_WORDS.get(str(kind), "anything"), example, *limits))


def _pluralize(described: str) -> str:
    """Return the description of a type for several values, such as `tables`."""
    for one, several in _PLURALS.items():
        if described.startswith(one):
            return f"{several}{described.removeprefix(one)}"
    return described


def _describe_default(field: FieldInfo) -> str | None:
    nothing = field.is_required() or field.default_factory or field.default is None
    return None if nothing else _format_toml(field.default)


def _format_toml(value: object) -> str:
    """Return a value in TOML syntax, which equals JSON for text, numbers and lists."""
    try:
        return json.dumps(value, default=_to_json, ensure_ascii=False)
    except (TypeError, ValueError):  # keys that are not text, or a recursive table
        return str(value)


def _to_json(value: object) -> Any:
    match value:
        case timedelta():
            return format_duration(value)
        case BaseModel():
            return value.model_dump()
        case set() | frozenset():
            return list(value)
    return str(value)


class SettingShape(StrEnum):
    """Shape of a setting's value."""

    TEXT = "text"
    NUMBER = "number"
    FLAG = "flag"
    CHOICE = "choice"
    CHOICES = "choices"
    """Any number of the choices."""
    LIST = "list"
    """Texts in order."""
    TABLE = "table"
    """Texts by name."""
    ANYTHING = "anything"
    """Any JSON value."""


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
    return {name: _find_shape(schema, definitions) for name, schema in properties.items()}


def _find_shape(schema: Any, definitions: Mapping[str, Any]) -> ShapedSetting:
    alternatives = _list_alternatives(schema, definitions)
    if len(alternatives) != 1:
        return ShapedSetting(SettingShape.ANYTHING)
    [(plain, within)] = alternatives
    if choices := _list_choices(plain):
        return ShapedSetting(SettingShape.CHOICE, choices)
    match plain.get("type"):
        case "array":
            return _find_list_shape(_find_shape(plain.get("items"), within))
        case "object":
            member = _find_shape(plain.get("additionalProperties"), within)
            is_table = member.shape in (SettingShape.TEXT, SettingShape.CHOICE)
            return ShapedSetting(SettingShape.TABLE if is_table else SettingShape.ANYTHING)
        case kind:
            return ShapedSetting(_PLAIN.get(str(kind), SettingShape.ANYTHING))


def _find_list_shape(member: ShapedSetting) -> ShapedSetting:
    if member.shape is SettingShape.CHOICE:
        return ShapedSetting(SettingShape.CHOICES, member.choices)
    is_list = member.shape is SettingShape.TEXT
    return ShapedSetting(SettingShape.LIST if is_list else SettingShape.ANYTHING)


def _list_choices(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the permitted words; empty if other values are possible."""
    choices = schema.get("enum", [])
    return tuple(choices) if all(isinstance(choice, str) for choice in choices) else ()
