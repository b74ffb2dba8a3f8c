"""Field types that the schemas of several resources share."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, StringConstraints, WithJsonSchema

from tocsin.credentials import Scope
from tocsin.store.tables import EPOCH
from tocsin.web.pagination import CompositeCursor, PageCursor

_LATEST = datetime(9999, 1, 1, tzinfo=UTC)


def _parse_timestamp(value: object) -> datetime:
    try:
        moment = datetime.fromisoformat(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ValueError("use a time such as 2026-11-21T05:33:01Z") from None
    if moment.tzinfo is None:
        raise ValueError("add the time zone, such as Z for UTC")
    return min(max(moment, EPOCH), _LATEST)


Timestamp = Annotated[
    datetime,
    BeforeValidator(_parse_timestamp),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
"""A time in ISO 8601 with its time zone, clamped to the years 1970 to 9998."""

SCOPES = sorted(Scope)

Name = Annotated[
    str,
    StringConstraints(
        strip_whitespace=True,
        min_length=1,
        max_length=100,
        # No control character anywhere, and something beside spaces
        pattern=r"^[^\x00-\x1f\x7f]*[^\s\x00-\x1f\x7f][^\x00-\x1f\x7f]*$",
    ),
]
# PostgreSQL's text holds every character but this one
Text = Annotated[str, StringConstraints(max_length=1000, pattern=r"^[^\x00]*$")]
Scopes = Annotated[
    list[str],
    Field(min_length=1, max_length=100, json_schema_extra={"items": {"enum": list(SCOPES)}}),
]
TotalRelation = Annotated[
    str,
    Field(
        description="`eq` if `total` is exact, `gte` if it is a lower bound.",
        json_schema_extra={"enum": ["eq", "gte"]},
    ),
]
Search = Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00]*$")]
Limit = Annotated[int, Field(ge=1, le=200, description="Maximum number of items.")]


def cursor_field(kind: str) -> Any:
    """Return the type of a `cursor` parameter for the list of this kind."""
    description = "`next_cursor` of the previous page."
    schema = {"type": "string", "description": description}
    return Annotated[
        PageCursor, BeforeValidator(partial(PageCursor.decode, kind)), WithJsonSchema(schema)
    ]


def composite_cursor_field(kind: str, *wanted: type[str] | range) -> Any:
    """Return the type of a `cursor` parameter for the list of this kind, with these parts."""
    description = "`next_cursor` of the previous page."
    schema = {"type": "string", "description": description}
    decode = partial(CompositeCursor.decode, kind, wanted)
    return Annotated[CompositeCursor, BeforeValidator(decode), WithJsonSchema(schema)]
