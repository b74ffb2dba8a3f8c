"""Loopback simulator of a SIEM vendor's API."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
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
    """A page of what the vendor lists."""

    cases: Sequence[Case]
    next_token: str | None
    """What the next page is asked for with; None at the last one."""


@dataclass(frozen=True, slots=True)
class _PageToken:
    """Where a page token leads to, and until when."""

    key: tuple[datetime, str]
    expires_at: datetime


class Simulator(VendorApi):
    """The API of one SIEM; `async with` serves it, at `url`."""

    most_per_page: ClassVar[int] = 100
    """The vendor's limit; whoever asks for more gets so many."""
    newest_first: ClassVar[bool] = False
    session_lifetime: ClassVar[timedelta] = timedelta(hours=1)
    page_token_lifetime: ClassVar[timedelta] = timedelta(minutes=10)

    def __init__(self, siem: Siem, *, port: int = 0) -> None:
        """Show a SIEM at a port; at one that is free, unless it is given."""
        self.siem = siem
        super().__init__(siem.clock, port=port)
        self.most_per_minute: int | None = None
        """More requests than these are answered 429."""
        self.before_each: Callable[[], None] = lambda: None
        """Called before each request is answered, so that things happen while pages are read."""
        self._sessions: dict[str, datetime] = {}
        self._places: dict[str, _PageToken] = {}
        self._faults: list[tuple[Fault, str]] = []
        self._page_fault: Fault | None = None

    # what a vendor's simulator says

    @abstractmethod
    def render(self, case: Case) -> dict[str, Any]:
        """Return an incident in the vendor's shape."""

    def render_log_event(self, occurrence: LogEvent) -> dict[str, Any]:
        """Return what was logged in the vendor's shape; needed where the provider has `events`."""
        raise NotImplementedError

    def is_signed(self, request: web.Request) -> bool:
        """Return whether a request may be answered: by default, whether it shows a session."""
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        ends = self._sessions.get(token)
        return scheme == "Bearer" and ends is not None and ends > self.siem.clock.now()

    # what its handlers use

    def begin_session(self) -> str:
        """Return a new bearer token, good for `session_lifetime`."""
        token = f"session-{next(self._numbers)}"
        self._sessions[token] = self.siem.clock.now() + self.session_lifetime
        return token

    def page(self, window: Window, *, limit: int, token: str | None = None) -> ListedPage:
        """Return the page that a token leads to, or the first one, of what changed in a window.

        A token leads to behind the last incident of the page before, so that what changes
        meanwhile moves nothing. Raises `Refusal` for a token that has expired and where an
        incident is poisoned.
        """
        cases = self.siem.changed(window)[:: -1 if self.newest_first else 1]
        start = 0 if token is None else self._place(cases, token)
        end = start + min(limit, self.most_per_page)
        page, more = cases[start:end], end < len(cases)
        if any(case.id in self.siem.poisoned for case in page):
            raise ErrorResponse(500, "an incident cannot be shown")
        if self._takes(Fault.PARTIAL):
            page = page[: len(page) // 2]
        elif token is not None and self._takes(Fault.REPEATED_PAGE):
            return ListedPage(page, token)
        return ListedPage(page, self._token(_sort_key(cases[end - 1])) if more else None)

    def slice(self, window: Window, *, limit: int, offset: int = 0) -> Sequence[Case]:
        """Return the incidents from `offset` on of what changed in a window, for other paging."""
        cases = self.siem.changed(window)[:: -1 if self.newest_first else 1]
        page = cases[offset : offset + min(limit, self.most_per_page)]
        if any(case.id in self.siem.poisoned for case in page):
            raise ErrorResponse(500, "an incident cannot be shown")
        return page[: len(page) // 2] if self._takes(Fault.PARTIAL) else page

    def has_page_token(self, text: str) -> bool:
        """Return whether a text holds a page token that was given out, such as a link does."""
        return any(token in text for token in self._places)

    def get(self, identifier: str) -> Case:
        """Return the incident as the API shows it now; `Refusal` 404 where it shows none."""
        if (case := self.siem.get(identifier)) is None:
            raise ErrorResponse(404, "there is no such incident")
        return case

    def show(self, case: Case) -> dict[str, Any]:
        """Return what the API shows of an incident: its shape, or nonsense for a malformed one."""
        record = self.render(case)
        return _corrupt(record) if case.malformed else record

    def logged(
        self, window: Window, entity: Entity, *, limit: int, offset: int = 0
    ) -> Sequence[LogEvent]:
        """Return what was logged in a window with an entity, the latest first, from `offset` on."""
        found = self.siem.logged(window, entity)
        page = found[offset : offset + min(limit, self.most_per_page)]
        return page[: len(page) // 2] if self._takes(Fault.PARTIAL) else page

    def show_log_event(self, occurrence: LogEvent) -> dict[str, Any]:
        """Return what the API shows of something logged; nonsense for what is malformed."""
        record = self.render_log_event(occurrence)
        return _corrupt(record) if occurrence.malformed else record

    # what a test uses

    def fail(self, *faults: Fault, times: int = 1, where: str = "") -> None:
        """Have the next requests go wrong, one for each fault, and that so many times over.

        Only requests are meant whose path contains `where`.
        """
        self._faults += [(fault, where) for _ in range(times) for fault in faults]

    @property
    def faults_left(self) -> int:
        """How many faults have not been met yet."""
        return len(self._faults)

    def recover(self) -> None:
        """Take back the faults that have not been met yet."""
        self._faults.clear()

    def forget(self) -> None:
        """End every session and every page token, as a restart does."""
        self._sessions.clear()
        self._places.clear()

    async def hang_up(self) -> None:
        """Be away: connections are refused until `listen`."""
        await self._server.hang_up()

    async def listen(self) -> None:
        """Be back, with nothing remembered."""
        self.forget()
        await self._server.listen()

    def _now(self) -> datetime:
        return self.siem.now()

    def _fault_of(self, request: web.Request) -> Fault | None:
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

    def _admit(self, request: web.Request) -> None:
        since = self.siem.clock.now() - _MINUTE
        if self.most_per_minute is not None:
            first = bisect_right(self.requests, since, key=lambda asked: asked.at)
            if len(self.requests) - first > self.most_per_minute:
                raise ErrorResponse(429, "too many requests", {"Retry-After": "60"})
        super()._admit(request)

    def _next_fault(self, request: web.Request) -> Fault | None:
        writes = request.method != "GET" and request.path not in self.open_paths
        for index, (fault, where) in enumerate(self._faults):
            concerned = fault not in OF_PAGES and (writes or fault is not Fault.LOST)
            if concerned and where in request.path:
                del self._faults[index]
                return fault
        return None

    def _takes(self, fault: Fault) -> bool:
        """Return whether this fault is the next of a page's, and take it if so."""
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
        """Return the index of the first incident behind the one that a token remembers."""
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
