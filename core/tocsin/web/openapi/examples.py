"""Examples of requests and responses, composed from those on the models."""

from __future__ import annotations

import builtins
import types
import typing
from datetime import datetime, timedelta
from enum import Enum
from types import NoneType
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from tocsin.model import Json
from tocsin.web.schemas.examples import CREATED


def build_example(model: type[BaseModel]) -> dict[str, Json]:
    """Return an example of the model: its `EXAMPLE`, completed from its fields.

    A nested model contributes its own example. The example omits optional members of requests.
    """
    given = _given(model)
    composed: dict[str, Json] = {}
    for name, field in model.model_fields.items():
        key = field.alias or name
        if key in given:
            composed[key] = given[key]
        elif field.is_required():
            composed[key] = _example_value(field.annotation, field)
    return composed | given


def _given(model: type[BaseModel]) -> dict[str, Json]:
    """Return the `EXAMPLE` of a model and its bases, the model's own first."""
    given: dict[str, Json] = {}
    for base in reversed(model.__mro__):
        given |= base.__dict__.get("EXAMPLE", {})
    return given


def _example_value(annotation: Any, field: FieldInfo | None = None) -> Json:
    extra = field.json_schema_extra if field is not None else None
    if isinstance(extra, dict) and isinstance(extra.get("enum"), list):
        return extra["enum"][0]  # type: ignore[index]
    if get_origin(annotation) is Annotated:
        annotation, *metadata = get_args(annotation)
        return _example_value(annotation, next((m for m in metadata if _is_field(m)), None))
    if get_origin(annotation) is not None:
        return _compound_example(annotation)
    if _is_model(annotation):
        return build_example(annotation)
    return _PLAIN[annotation] if annotation in _PLAIN else _first_member(annotation)


def _compound_example(annotation: Any) -> Json:
    parts = get_args(annotation)
    match get_origin(annotation):
        case typing.Union | types.UnionType:
            return None if NoneType in parts else _example_value(parts[0])
        case typing.Literal:
            return str(parts[0])
        case builtins.list if _is_model(parts[0]):
            return [_example_value(parts[0])]
        case builtins.list:
            return []
        case _:
            return {}


_PLAIN: dict[Any, Json] = {bool: False, int: 1, datetime: CREATED, timedelta: "PT5M"}


def _first_member(annotation: Any) -> Json:
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return str(next(iter(annotation)).value)
    raise LookupError(f"no example for {annotation}: add the member to the model's EXAMPLE")


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _is_field(metadata: object) -> bool:
    return isinstance(metadata, FieldInfo)
