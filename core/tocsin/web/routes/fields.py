"""Field types and errors that the endpoints share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, Protocol

from pydantic import BeforeValidator, Field, StringConstraints, WithJsonSchema
from sqlalchemy import Row

from tocsin.credentials import NoSuchRecordError, NotActiveError, RecordPage, Scope
from tocsin.errors import CallerError
from tocsin.model import Json
from tocsin.store.tables import EPOCH
from tocsin.web.context import RequestContext, Response
from tocsin.web.pagination import CompositeCursor, PageCursor
from tocsin.web.problems import ProblemType, refusal

_LATEST = datetime(9999, 1, 1, tzinfo=UTC)


def _parse_timestamp(value: object) -> datetime:
    try:
        moment = datetime.fromisoformat(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ValueError("give a moment such as 2026-11-21T05:33:01Z") from None
    if moment.tzinfo is None:
        raise ValueError("say in which time zone, such as with a Z for UTC")
    return min(max(moment, EPOCH), _LATEST)


Timestamp = Annotated[
    datetime,
    BeforeValidator(_parse_timestamp),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
"""A moment in ISO 8601, with its time zone; none lies before 1970 or after 9998."""


NO_STORE = {"Cache-Control": "no-store"}
"""The header of an answer with a secret."""
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
        description="`eq` where `total` is exact, `gte` where there are more.",
        json_schema_extra={"enum": ["eq", "gte"]},
    ),
]
Search = Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00]*$")]
Limit = Annotated[int, Field(ge=1, le=200, description="How many at most.")]


def cursor_field(kind: str) -> Any:
    """Return the type of a `cursor` parameter for the list of this kind."""
    description = "The `next_cursor` of the page before."
    schema = {"type": "string", "description": description}
    return Annotated[
        PageCursor, BeforeValidator(partial(PageCursor.decode, kind)), WithJsonSchema(schema)
    ]


def composite_cursor_field(kind: str, *wanted: type[str] | range) -> Any:
    """Return the type of a `cursor` parameter for the list of this kind, with parts as wanted."""
    description = "The `next_cursor` of the page before."
    schema = {"type": "string", "description": description}
    decode = partial(CompositeCursor.decode, kind, wanted)
    return Annotated[CompositeCursor, BeforeValidator(decode), WithJsonSchema(schema)]


def parse_scopes(scopes: Sequence[str]) -> tuple[str, ...]:
    """Return the scopes, each once and in order; CallerError (400) where there is no such scope."""
    unknown = sorted(set(scopes).difference(SCOPES))
    if unknown:
        raise refusal(
            ProblemType.INVALID_SCOPE,
            400,
            f"There is no scope {', '.join(map(repr, unknown))}; valid are {', '.join(SCOPES)}.",
        )
    return tuple(sorted(set(scopes)))


class CountedPage(Protocol):
    """A page of a list that is counted so far and no further."""

    @property
    def total(self) -> int:
        """How many there are."""

    @property
    def exact(self) -> bool:
        """False where there are more."""


def total_fields(page: CountedPage) -> dict[str, Json]:
    """Return what a page says of how many there are."""
    return {"total": page.total, "total_relation": "eq" if page.exact else "gte"}


def record_page_response(
    call: RequestContext,
    page: RecordPage,
    *,
    name: str,
    kind: str,
    item: Callable[[Row[Any]], Json],
) -> Response:
    """Return one page of a list, the array under `name`."""
    content = {name: [item(row) for row in page.rows], "total": page.total}
    return page_response(
        call, content, PageCursor(kind, page.next) if page.next is not None else None
    )


def page_response(
    call: RequestContext, content: dict[str, Any], following: PageCursor | CompositeCursor | None
) -> Response:
    """Return the page with the way to the next one: `next_cursor`, and `Link` (RFC 8288)."""
    if following is None:
        return Response(content | {"next_cursor": None})
    cursor = following.encode()
    return Response(content | {"next_cursor": cursor}, {"Link": call.next_link(cursor)})


@contextmanager
def translate_record_errors(what: str, *, not_active: str = "") -> Iterator[None]:
    """Turn what a record refuses into problems: CallerError (404, or 409 in these words)."""
    try:
        yield
    except NoSuchRecordError:
        raise not_found(what) from None
    except NotActiveError as error:
        detail = not_active.format(status=error.status)
        raise refusal(ProblemType.NOT_ACTIVE, 409, detail) from None


def not_found(what: str) -> CallerError:
    """Return the error for an identifier that leads to nothing."""
    return CallerError(404, f"There is no {what} of this identifier.")
