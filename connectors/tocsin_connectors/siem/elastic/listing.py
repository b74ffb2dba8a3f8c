"""Listing the cases of a space: those that were made in a window, and those that were changed.

Kibana finds cases by the time at which they were made, and has no filter for the time of change. So
changes are listed from the newest back. A case that changes meanwhile moves to the front, and what
is behind it comes a second time; only where one was deleted could another be passed over, which is
seen by the total.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from tocsin import Api, ApiResponse, Broken, Listing, Window
from tocsin_connectors.siem.elastic.cases import parse_case_update
from tocsin_connectors.siem.records import number

CASES = "/api/cases"
FIND = f"{CASES}/_find"
OWNER = "securitySolution"
_MAX_PAGE_SIZE = 100  # cases on a page


@dataclass(frozen=True, slots=True)
class CaseCursor:
    """How far a list was read: the next case, how many are on a page, how many there were."""

    offset: int = 0
    size: int = _MAX_PAGE_SIZE
    total: int = 0
    last: str | None = None
    """When the last one that was listed was changed."""

    def encode(self) -> list[Any]:
        """Return the token that `decode` turns back into this."""
        return [self.offset, self.size, self.total, self.last]

    @classmethod
    def decode(cls, token: Any, limit: int) -> Self:
        """Return the place that `encode` made the token of; the beginning for None."""
        return cls(size=min(limit, _MAX_PAGE_SIZE)) if token is None else cls(*token)


@dataclass(frozen=True, slots=True)
class _CasePage:
    cases: Sequence[Mapping[str, Any]]
    following: CaseCursor
    answer: ApiResponse

    def listing(self, cases: Sequence[Mapping[str, Any]], *, is_end: bool) -> Listing:
        token = None if is_end else self.following.encode()
        return Listing(records=cases, next_token=token, server_time=self.answer.server_time)


async def list_new_cases(kibana: Api, window: Window, place: CaseCursor) -> Listing:
    """Return a page of the cases that were made in a window, the oldest first."""
    bounds = {"from": window.start.isoformat(), "to": window.end.isoformat()}
    page = await _fetch_page(kibana, place, sortField="createdAt", sortOrder="asc", **bounds)
    return page.listing(page.cases, is_end=page.following.offset >= page.following.total)


async def list_changed_cases(kibana: Api, window: Window, place: CaseCursor) -> Listing:
    """Return a page of the cases that were last changed in a window, the newest first.

    `Broken` where they are in another order: Kibana before 8.9 sorts by the time at which they were
    made, and does not say so.
    """
    page = await _fetch_page(kibana, place, sortField="updatedAt", sortOrder="desc")
    times = [_format_change_time(case) for case in page.cases]
    _check_order([place.last, *times])
    inside = [
        case
        for case, told in zip(page.cases, times, strict=True)
        if told and datetime.fromisoformat(told) in window
    ]
    is_past = any(told is None or datetime.fromisoformat(told) < window.start for told in times)
    return page.listing(inside, is_end=is_past or page.following.offset >= page.following.total)


async def _fetch_page(kibana: Api, place: CaseCursor, **query: Any) -> _CasePage:
    number_of_page = place.offset // place.size + 1
    answer = await kibana.get(FIND, owner=OWNER, page=number_of_page, perPage=place.size, **query)
    body = answer.json if isinstance(answer.json, dict) else {}
    cases, total, size = body.get("cases"), number(body, "total"), number(body, "per_page")
    if not isinstance(cases, list) or total is None or not size:
        raise Broken(f"GET {FIND} answered without `cases`, `total` and `per_page`")
    if not all(isinstance(case, dict) for case in cases):
        raise Broken(f"GET {FIND} answered something else than cases")
    if total < place.total:
        raise Broken("cases were deleted while they were listed")
    start = (number_of_page - 1) * size
    if start < total and not cases:
        raise Broken(f"GET {FIND} answered none of the {total - start} cases that are left")
    last = _format_change_time(cases[-1]) if cases else None
    return _CasePage(cases, CaseCursor(start + len(cases), size, total, last), answer)


def _format_change_time(case: Mapping[str, Any]) -> str | None:
    """Return when a case was changed, None where it never was or does not say."""
    try:
        moment = parse_case_update(case)
    except ValueError:
        return None
    return moment.isoformat() if moment else None


def _check_order(times: Sequence[str | None]) -> None:
    told = [datetime.fromisoformat(it) for it in times if it]
    if told != sorted(told, reverse=True):
        raise Broken(f"GET {FIND} does not sort by `updatedAt`; Kibana 8.9 and newer do")
