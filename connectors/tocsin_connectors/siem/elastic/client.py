"""Kibana client, and lists of the cases of a space.

Kibana can filter cases by creation time, but not by the time of the last change, so changes are
listed newest first. If a case changes in the meantime, it moves to the front, and some cases are
returned twice. A case can be skipped only if another one is deleted, which the total reveals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from tocsin import Api, ApiResponse, Broken, Listing, Tools, Window
from tocsin_connectors.siem.elastic.mapping import parse_case_update
from tocsin_connectors.siem.elastic.settings import ElasticSettings
from tocsin_connectors.siem.records import number


class KibanaClient(Api):
    """Client of one Kibana space."""

    def __init__(self, tools: Tools, settings: ElasticSettings) -> None:
        """Store the dependencies. Each request has the header that Kibana requires against CSRF."""
        super().__init__(tools, settings.model_copy(update={"url": settings.kibana}))
        self._fields = {"kbn-xsrf": "true", **settings.authorization}

    async def request(
        self, method: str, path: str, *, headers: Mapping[str, str] | None = None, **options: Any
    ) -> ApiResponse:
        """Send a request as `Api.request` does."""
        fields = {**self._fields, **(headers or {})}
        return await super().request(method, path, headers=fields, **options)


CASES = "/api/cases"
FIND = f"{CASES}/_find"
OWNER = "securitySolution"
_MAX_PAGE_SIZE = 100  # cases on a page


@dataclass(frozen=True, slots=True)
class CaseCursor:
    """Position in a list of cases: next case, page size and total."""

    offset: int = 0
    size: int = _MAX_PAGE_SIZE
    total: int = 0
    last: str | None = None
    """Change time of the last listed case."""

    def encode(self) -> list[Any]:
        """Return the page token; the inverse of `decode`."""
        return [self.offset, self.size, self.total, self.last]

    @classmethod
    def decode(cls, token: Any, limit: int) -> Self:
        """Return the cursor of a page token, or the first one for None."""
        return cls(size=min(limit, _MAX_PAGE_SIZE)) if token is None else cls(*token)


@dataclass(frozen=True, slots=True)
class _CasePage:
    cases: Sequence[Mapping[str, Any]]
    following: CaseCursor
    answer: ApiResponse

    def listing(self, cases: Sequence[Mapping[str, Any]], *, is_end: bool) -> Listing:
        token = None if is_end else self.following.encode()
        return Listing(records=cases, next_token=token, server_time=self.answer.server_time)


async def list_new_cases(kibana: Api, window: Window, cursor: CaseCursor) -> Listing:
    """Return a page of the cases created in a window, oldest first."""
    bounds = {"from": window.start.isoformat(), "to": window.end.isoformat()}
    page = await _fetch_page(kibana, cursor, sortField="createdAt", sortOrder="asc", **bounds)
    return page.listing(page.cases, is_end=page.following.offset >= page.following.total)


async def list_changed_cases(kibana: Api, window: Window, cursor: CaseCursor) -> Listing:
    """Return a page of the cases last changed in a window, newest first.

    Raises `Broken` if the order differs: Kibana before 8.9 silently sorts by creation time.
    """
    page = await _fetch_page(kibana, cursor, sortField="updatedAt", sortOrder="desc")
    times = [_format_change_time(case) for case in page.cases]
    _check_order([cursor.last, *times])
    inside = [
        case
        for case, time in zip(page.cases, times, strict=True)
        if time and datetime.fromisoformat(time) in window
    ]
    is_past = any(time is None or datetime.fromisoformat(time) < window.start for time in times)
    return page.listing(inside, is_end=is_past or page.following.offset >= page.following.total)


async def _fetch_page(kibana: Api, cursor: CaseCursor, **query: Any) -> _CasePage:
    number_of_page = cursor.offset // cursor.size + 1
    answer = await kibana.get(FIND, owner=OWNER, page=number_of_page, perPage=cursor.size, **query)
    body = answer.json if isinstance(answer.json, dict) else {}
    cases, total, size = body.get("cases"), number(body, "total"), number(body, "per_page")
    if not isinstance(cases, list) or total is None or not size:
        raise Broken(f"GET {FIND} returned a response without `cases`, `total` and `per_page`")
    if not all(isinstance(case, dict) for case in cases):
        raise Broken(f"GET {FIND} did not return cases")
    if total < cursor.total:
        raise Broken("cases were deleted while Tocsin listed them")
    start = (number_of_page - 1) * size
    if start < total and not cases:
        raise Broken(f"GET {FIND} returned none of the {total - start} remaining cases")
    last = _format_change_time(cases[-1]) if cases else None
    return _CasePage(cases, CaseCursor(start + len(cases), size, total, last), answer)


def _format_change_time(case: Mapping[str, Any]) -> str | None:
    """Return when a case was changed, or None if it never was or has no valid time."""
    try:
        moment = parse_case_update(case)
    except ValueError:
        return None
    return moment.isoformat() if moment else None


def _check_order(times: Sequence[str | None]) -> None:
    moments = [datetime.fromisoformat(time) for time in times if time]
    if moments != sorted(moments, reverse=True):
        raise Broken(f"GET {FIND} does not sort by `updatedAt`; Kibana 8.9 and newer do")
