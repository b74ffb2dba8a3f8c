"""What the lists of credentials share: their members, their paging, and what is no record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Annotated, Any, Protocol

from pydantic import BeforeValidator, Field, StringConstraints, WithJsonSchema
from sqlalchemy import Row

from tocsin.credentials import NoSuchRecordError, NotActiveError, RecordPage, Scope
from tocsin.errors import CallerError
from tocsin.model import Json
from tocsin.web.calls import Answer, Call
from tocsin.web.cursor import Place, Spot
from tocsin.web.problems import Kind, refusal

SHOWN_ONCE = {"Cache-Control": "no-store"}
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


def place_of(kind: str) -> Any:
    """Return the type of a `cursor` parameter for the list of this kind."""
    description = "The `next_cursor` of the page before."
    schema = {"type": "string", "description": description}
    return Annotated[Place, BeforeValidator(partial(Place.decode, kind)), WithJsonSchema(schema)]


def spot_of(kind: str, *wanted: type[str] | range) -> Any:
    """Return the type of a `cursor` parameter for the list of this kind, with parts as wanted."""
    description = "The `next_cursor` of the page before."
    schema = {"type": "string", "description": description}
    decode = partial(Spot.decode, kind, wanted)
    return Annotated[Spot, BeforeValidator(decode), WithJsonSchema(schema)]


def known_scopes(scopes: Sequence[str]) -> tuple[str, ...]:
    """Return the scopes, each once and in order; CallerError (400) where there is no such scope."""
    unknown = sorted(set(scopes).difference(SCOPES))
    if unknown:
        raise refusal(
            Kind.INVALID_SCOPE,
            400,
            f"There is no scope {', '.join(map(repr, unknown))}; valid are {', '.join(SCOPES)}.",
        )
    return tuple(sorted(set(scopes)))


class Counted(Protocol):
    """A page of a list that is counted so far and no further."""

    @property
    def total(self) -> int:
        """How many there are."""

    @property
    def exact(self) -> bool:
        """False where there are more."""


def total_of(page: Counted) -> dict[str, Json]:
    """Return what a page says of how many there are."""
    return {"total": page.total, "total_relation": "eq" if page.exact else "gte"}


def answer_page(
    call: Call, page: RecordPage, *, name: str, kind: str, item: Callable[[Row[Any]], Json]
) -> Answer:
    """Return one page of a list, the array under `name`."""
    content = {name: [item(row) for row in page.rows], "total": page.total}
    return with_next(call, content, Place(kind, page.next) if page.next is not None else None)


def with_next(call: Call, content: dict[str, Any], following: Place | Spot | None) -> Answer:
    """Return the page with the way to the next one: `next_cursor`, and `Link` (RFC 8288)."""
    if following is None:
        return Answer(content | {"next_cursor": None})
    cursor = following.encode()
    return Answer(content | {"next_cursor": cursor}, {"Link": call.next_link(cursor)})


@contextmanager
def refusing(what: str, *, not_active: str = "") -> Iterator[None]:
    """Turn what a record refuses into problems: CallerError (404, or 409 in these words)."""
    try:
        yield
    except NoSuchRecordError:
        raise no_such(what) from None
    except NotActiveError as error:
        detail = not_active.format(status=error.status)
        raise refusal(Kind.NOT_ACTIVE, 409, detail) from None


def no_such(what: str) -> CallerError:
    """Return the error for an identifier that leads to nothing."""
    return CallerError(404, f"There is no {what} of this identifier.")
