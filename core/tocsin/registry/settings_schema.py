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

from tocsin.fields import PluginSettings, format_duration

_SECRET = 'secret: { env = "NAME" } or { file = "path" }'  # noqa: S105 - describes the syntax
_WORDS = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "object": "table",
}
_BOUNDS = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}


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


def _describe_type(schema: Any, definitions: Mapping[str, Any]) -> str:
    if not isinstance(schema, Mapping):  # `true` permits anything
        return "anything"
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        others = {
            key: value for key, value in definitions.items() if key != name
        }  # recursive definitions end here
        return _describe_type(definitions.get(name, {}), others)
    if schema.get("format") == "password":
        return _SECRET
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            kinds = (
                _describe_type(it, definitions) for it in schema[several] if it != {"type": "null"}
            )
            return " or ".join(dict.fromkeys(kinds))
    if "enum" in schema or "const" in schema:
        return "one of " + ", ".join(map(_format_toml, schema.get("enum", [schema.get("const")])))
    return _describe_plain_type(schema, definitions)


def _describe_plain_type(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    kind = schema.get("type")
    if kind == "array":
        return f"list of {_describe_type(schema.get('items', {}), definitions)}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), Mapping):
        return f"table of {_describe_type(schema['additionalProperties'], definitions)}"
    bounds = "".join(f" {sign} {schema[name]}" for name, sign in _BOUNDS.items() if name in schema)
    example = f" such as {_format_toml(schema['examples'][0])}" if schema.get("examples") else ""
    return _WORDS.get(str(kind), "anything") + bounds + example


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


_NULL = {"type": "null"}


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
    """Return the permitted words; empty if other values are possible."""
    choices = schema.get("enum", [])
    return tuple(choices) if all(isinstance(choice, str) for choice in choices) else ()


def _resolve_schema(schema: Any, definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of a present value; `{}` if several types are possible."""
    if not isinstance(schema, Mapping):  # `true` permits anything
        return {}
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        others = {
            key: value for key, value in definitions.items() if key != name
        }  # recursive definitions end here
        return _resolve_schema(definitions.get(name), others)
    if "anyOf" in schema:
        kinds = [it for it in schema["anyOf"] if it != _NULL]
        return _resolve_schema(kinds[0], definitions) if len(kinds) == 1 else {}
    return schema
