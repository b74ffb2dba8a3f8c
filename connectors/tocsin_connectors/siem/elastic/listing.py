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

from tocsin import Answer, Api, Broken, Listing, Window
from tocsin_connectors.siem.elastic.cases import changed_at
from tocsin_connectors.siem.records import number

CASES = "/api/cases"
FIND = f"{CASES}/_find"
OWNER = "securitySolution"
_LARGEST = 100  # cases on a page


@dataclass(frozen=True, slots=True)
class Place:
    """How far a list was read: the next case, how many are on a page, how many there were."""

    offset: int = 0
    size: int = _LARGEST
    total: int = 0
    last: str | None = None
    """When the last one that was listed was changed."""

    def encode(self) -> list[Any]:
        """Return the token that `decode` turns back into this."""
        return [self.offset, self.size, self.total, self.last]

    @classmethod
    def decode(cls, token: Any, limit: int) -> Self:
        """Return the place that `encode` made the token of; the beginning for None."""
        return cls(size=min(limit, _LARGEST)) if token is None else cls(*token)


@dataclass(frozen=True, slots=True)
class _Page:
    cases: Sequence[Mapping[str, Any]]
    following: Place
    answer: Answer

    def listing(self, cases: Sequence[Mapping[str, Any]], *, is_end: bool) -> Listing:
        token = None if is_end else self.following.encode()
        return Listing(records=cases, next_token=token, server_time=self.answer.server_time)


async def list_new(kibana: Api, window: Window, place: Place) -> Listing:
    """Return a page of the cases that were made in a window, the oldest first."""
    bounds = {"from": window.start.isoformat(), "to": window.end.isoformat()}
    page = await _page(kibana, place, sortField="createdAt", sortOrder="asc", **bounds)
    return page.listing(page.cases, is_end=page.following.offset >= page.following.total)


async def list_changed(kibana: Api, window: Window, place: Place) -> Listing:
    """Return a page of the cases that were last changed in a window, the newest first.

    `Broken` where they are in another order: Kibana before 8.9 sorts by the time at which they were
    made, and does not say so.
    """
    page = await _page(kibana, place, sortField="updatedAt", sortOrder="desc")
    times = [_changed_at(case) for case in page.cases]
    _expect_order([place.last, *times])
    inside = [
        case
        for case, told in zip(page.cases, times, strict=True)
        if told and datetime.fromisoformat(told) in window
    ]
    is_past = any(told is None or datetime.fromisoformat(told) < window.start for told in times)
    return page.listing(inside, is_end=is_past or page.following.offset >= page.following.total)


async def _page(kibana: Api, place: Place, **query: Any) -> _Page:
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
    last = _changed_at(cases[-1]) if cases else None
    return _Page(cases, Place(start + len(cases), size, total, last), answer)


def _changed_at(case: Mapping[str, Any]) -> str | None:
    """Return when a case was changed, None where it never was or does not say."""
    try:
        moment = changed_at(case)
    except ValueError:
        return None
    return moment.isoformat() if moment else None


def _expect_order(times: Sequence[str | None]) -> None:
    told = [datetime.fromisoformat(it) for it in times if it]
    if told != sorted(told, reverse=True):
        raise Broken(f"GET {FIND} does not sort by `updatedAt`; Kibana 8.9 and newer do")
