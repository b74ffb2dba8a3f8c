"""Functions that the endpoints for API keys and for API clients share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Row

from tocsin.credentials import NoSuchRecordError, NotActiveError, RecordPage
from tocsin.model import Json
from tocsin.web.context import RequestContext, Response
from tocsin.web.pagination import PageCursor, page_response
from tocsin.web.problems import ProblemType
from tocsin.web.request_problems import INVALID_SCOPE
from tocsin.web.schemas.fields import SCOPES

NO_STORE = {"Cache-Control": "no-store"}
"""Header fields of a response with a secret."""


def parse_scopes(scopes: Sequence[str]) -> tuple[str, ...]:
    """Return the scopes, sorted and unique; raises ProblemError (400) for an unknown one."""
    unknown = sorted(set(scopes).difference(SCOPES))
    if unknown:
        raise INVALID_SCOPE.error(scopes=", ".join(map(repr, unknown)), valid=", ".join(SCOPES))
    return tuple(sorted(set(scopes)))


@contextmanager
def translate_record_errors(
    missing: ProblemType, not_active: ProblemType | None = None
) -> Iterator[None]:
    """Report a missing record (404) and one that is not active (409) as these problems."""
    try:
        yield
    except NoSuchRecordError:
        raise missing.error() from None
    except NotActiveError as error:
        if not_active is None:
            raise
        raise not_active.error(status=error.status) from None


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
