"""Mistakes in settings, told by the names that the operator has written."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import ValidationError
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError


def rename_fields(error: ValidationError, names: Mapping[str, str]) -> ValidationError:
    """Return the error, with its fields called by other names."""
    return ValidationError.from_exception_data(
        error.title,
        [_rename_field(detail, names) for detail in error.errors(include_url=False)],
        hide_input=True,
    )


def _rename_field(detail: ErrorDetails, names: Mapping[str, str]) -> InitErrorDetails:
    place = [names.get(str(part), part) for part in detail["loc"][:1]]
    return InitErrorDetails(
        type=PydanticCustomError(detail["type"], detail["msg"], detail.get("ctx")),
        loc=(*place, *detail["loc"][1:]),
        input=detail["input"],
    )
