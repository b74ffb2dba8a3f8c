"""Loopback simulator of a SIEM vendor's API.

Derive from `Simulator` and add only the vendor's part: routes, sign-in, and the shape of incidents.
Sessions, pagination, throttling and faults are built in.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar

from aiohttp import web

from tocsin.model import Entity, Window
from tocsin.testing.faults import OF_PAGES, Fault
from tocsin.testing.siem import Case, LogEvent, Siem
from tocsin.testing.vendor_api import ErrorResponse, Handler, VendorApi

_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class ListedPage:
    """A page of the vendor's list of incidents."""

    cases: Sequence[Case]
    next_token: str | None
    """The token for the next page; None on the last page."""


@dataclass(frozen=True, slots=True)
class _PageToken:
    """The position and expiry of a page token."""

    key: tuple[datetime, str]
    expires_at: datetime


class Simulator(VendorApi):
    """A simulated SIEM; `async with` serves its API at `url`."""

    most_per_page: ClassVar[int] = 100
    """The vendor's page limit, which applies even if a client requests more records."""
    newest_first: ClassVar[bool] = False
    session_lifetime: ClassVar[timedelta] = timedelta(hours=1)
    page_token_lifetime: ClassVar[timedelta] = timedelta(minutes=10)

    def __init__(self, siem: Siem, *, port: int = 0) -> None:
        """Serve a SIEM on `port`; 0 selects a free port."""
        self.siem = siem
        super().__init__(siem.clock, port=port)
        self.most_per_minute: int | None = None
        """The number of requests per minute above which 429 is returned."""
        self.before_each: Callable[[], None] = lambda: None
        """A callback before each request is answered, for changes during pagination."""
        self._sessions: dict[str, datetime] = {}
        self._places: dict[str, _PageToken] = {}
        self._faults: list[tuple[Fault, str]] = []
        self._page_fault: Fault | None = None

    # implemented by a vendor's simulator

    @abstractmethod
    def render(self, case: Case) -> dict[str, Any]:
        """Return an incident in the vendor's format."""

    def render_log_event(self, log_event: LogEvent) -> dict[str, Any]:
        """Return a log event in the vendor's format; required for providers with `events`."""
        raise NotImplementedError

    def is_signed(self, request: web.Request) -> bool | Awaitable[bool]:
        """Return whether a request is authenticated; by default, whether it has a valid session.

        If the body contains the credentials, make this method a coroutine function.
        """
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        return scheme == "Bearer" and self.has_session(token)

    # used by its handlers

    def begin_session(self) -> str:
        """Return a new bearer token that is valid for `session_lifetime`."""
        token = f"session-{next(self._numbers)}"
        self._sessions[token] = self.siem.clock.now() + self.session_lifetime
        return token

    def has_session(self, token: str) -> bool:
        """Return whether a session token is valid, wherever the request contains it."""
        ends = self._sessions.get(token)
        return ends is not None and ends > self.siem.clock.now()

    def page(self, window: Window, *, limit: int, token: str | None = None) -> ListedPage:
        """Return the page for a token, or the first page of the changes in a window.

        A token points to the position after the previous page's last incident, so changes do not
        shift the pages. Raises `ErrorResponse` if the token has expired, or if the page contains an
        incident in `siem.poisoned`.
        """
        cases = self.siem.changed(window)[:: -1 if self.newest_first else 1]
        start = 0 if token is None else self._place(cases, token)
        end = start + min(limit, self.most_per_page)
        page, more = cases[start:end], end < len(cases)
        if any(case.id in self.siem.poisoned for case in page):
            raise ErrorResponse(500, "an incident cannot be rendered")
        if self._takes(Fault.PARTIAL):
            page = page[: len(page) // 2]
        elif token is not None and self._takes(Fault.REPEATED_PAGE):
            return ListedPage(page, token)
        return ListedPage(page, self._token(_sort_key(cases[end - 1])) if more else None)

    def slice(
        self, cases: Window | Sequence[Case], *, limit: int, offset: int = 0
    ) -> Sequence[Case]:
        """Return the changes in a window, starting at `offset`, for other kinds of pagination.

        Instead of a window, you can pass another list of cases, such as `siem.created(window)`.
        """
        if isinstance(cases, Window):
            cases = self.siem.changed(cases)[:: -1 if self.newest_first else 1]
        page = cases[offset : offset + min(limit, self.most_per_page)]
        if any(case.id in self.siem.poisoned for case in page):
            raise ErrorResponse(500, "an incident cannot be rendered")
        return page[: len(page) // 2] if self._takes(Fault.PARTIAL) else page

    def has_page_token(self, text: str) -> bool:
        """Return whether a string, such as a link, contains one of the simulator's page tokens."""
        return any(token in text for token in self._places)

    def get(self, identifier: str) -> Case:
        """Return the visible version of an incident, or raise `ErrorResponse` with status 404."""
        if (case := self.siem.get(identifier)) is None:
            raise ErrorResponse(404, "no such incident")
        return case

    def show(self, case: Case) -> dict[str, Any]:
        """Return an incident as the API shows it; corrupt the record if the case is malformed."""
        record = self.render(case)
        return _corrupt(record) if case.malformed else record

    def logged(
        self, window: Window, entity: Entity, *, limit: int, offset: int = 0
    ) -> Sequence[LogEvent]:
        """Return log events that contain an entity, latest first, starting at `offset`."""
        found = self.siem.logged(window, entity)
        page = found[offset : offset + min(limit, self.most_per_page)]
        return page[: len(page) // 2] if self._takes(Fault.PARTIAL) else page

    def show_log_event(self, log_event: LogEvent) -> dict[str, Any]:
        """Return a log event as the API shows it; corrupt the record if the event is malformed."""
        record = self.render_log_event(log_event)
        return _corrupt(record) if log_event.malformed else record

    # used by tests

    def fail(self, *faults: Fault, times: int = 1, where: str = "") -> None:
        """Make the next requests fail, one for each fault; `times` repeats all faults.

        Affects only requests whose path contains `where`.
        """
        self._faults += [(fault, where) for _ in range(times) for fault in faults]

    @property
    def faults_left(self) -> Sequence[Fault]:
        """The faults that have not occurred yet."""
        return [fault for fault, _ in self._faults]

    def recover(self) -> None:
        """Remove the faults that have not occurred yet."""
        self._faults.clear()

    def forget(self) -> None:
        """Drop all sessions and page tokens, to simulate a restart."""
        self._sessions.clear()
        self._places.clear()

    async def hang_up(self) -> None:
        """Refuse connections until `listen` is called."""
        await self._server.hang_up()

    async def listen(self) -> None:
        """Accept connections again, after dropping all sessions and page tokens."""
        self.forget()
        await self._server.listen()

    def _now(self) -> datetime:
        return self.siem.now()

    def _select_fault(self, request: web.Request) -> Fault | None:
        self.before_each()
        fault = self._next_fault(request)
        if fault in (Fault.REVOKED, Fault.RESTARTED):
            self._sessions.clear()
        if fault is Fault.RESTARTED:
            self._places.clear()
        return fault

    async def _handle(self, request: web.Request, handler: Handler) -> web.Response:
        self._page_fault = None
        response = await super()._handle(request, handler)
        if self._page_fault is Fault.PARTIAL:
            response.set_status(206)
        return response

    async def _admit(self, request: web.Request) -> None:
        since = self.siem.clock.now() - _MINUTE
        if self.most_per_minute is not None:
            first = bisect_right(self.requests, since, key=lambda asked: asked.at)
            if len(self.requests) - first > self.most_per_minute:
                raise ErrorResponse(429, "too many requests", {"Retry-After": "60"})
        await super()._admit(request)

    def _next_fault(self, request: web.Request) -> Fault | None:
        writes = request.method != "GET" and request.path not in self.open_paths
        for index, (fault, where) in enumerate(self._faults):
            concerned = fault not in OF_PAGES and (writes or fault is not Fault.LOST)
            if concerned and where in request.path:
                del self._faults[index]
                return fault
        return None

    def _takes(self, fault: Fault) -> bool:
        """Return whether this is the next page fault, and consume it if so."""
        for index, (next_fault, _) in enumerate(self._faults):
            if next_fault is fault:
                del self._faults[index]
                self._page_fault = fault
                return True
        return False

    def _token(self, key: tuple[datetime, str]) -> str:
        token = f"page-{next(self._numbers)}"
        self._places[token] = _PageToken(key, self.siem.clock.now() + self.page_token_lifetime)
        return token

    def _place(self, cases: Sequence[Case], token: str) -> int:
        """Return the index of the first incident behind a token's position."""
        place = self._places.get(token)
        expired = place is None or place.expires_at <= self.siem.clock.now()
        if place is None or expired or self._takes(Fault.EXPIRED_PAGE):
            raise ErrorResponse(400, "the page token has expired")
        if self.newest_first:
            return len(cases) - bisect_left(cases[::-1], place.key, key=_sort_key)
        return bisect_right(cases, place.key, key=_sort_key)


def _sort_key(case: Case) -> tuple[datetime, str]:
    return case.changed_at, case.id


def _corrupt(record: dict[str, Any]) -> dict[str, Any]:
    return {name: {"unexpected": value} for name, value in record.items()}
