"""Faults that a simulator can inject."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from email.utils import format_datetime
from enum import StrEnum, auto

from aiohttp import web

Answer = Callable[[], Awaitable[web.Response]]
"""Returns the regular response to the request."""


class Fault(StrEnum):
    """A way for a single request to fail."""

    THROTTLED = auto()
    """429, with Retry-After in seconds."""
    THROTTLED_UNTIL = auto()
    """429, with Retry-After as a date according to the SIEM's clock."""
    UNAVAILABLE = auto()
    """503, with Retry-After in seconds."""
    BAD_GATEWAY = auto()
    """502, with HTML."""
    ERROR = auto()
    """500."""
    UNAUTHORIZED = auto()
    """401, even with valid credentials."""
    FORBIDDEN = auto()
    """403."""
    PARTIAL = auto()
    """206, with half of the page's records."""
    LOGIN_PAGE = auto()
    """200, with the HTML of a login page."""
    EMPTY = auto()
    """200, with an empty body."""
    UNEXPECTED = auto()
    """200, with JSON that lacks every expected member."""
    TRUNCATED = auto()
    """200, with truncated JSON."""
    CUT = auto()
    """The connection breaks during the response."""
    SLOW = auto()
    """There is no response until the client gives up."""
    REVOKED = auto()
    """The SIEM revokes all sessions: 401 until the next sign-in."""
    RESTARTED = auto()
    """The connection breaks without a response, and the SIEM drops its sessions and page tokens."""
    LOST = auto()
    """The SIEM processes the next request that is not a GET, but the response is lost."""
    EXPIRED_PAGE = auto()
    """The next page token that the client uses has expired: 400."""
    REPEATED_PAGE = auto()
    """The response to the next page token links to the same page again."""


OF_PAGES = frozenset({Fault.EXPIRED_PAGE, Fault.REPEATED_PAGE, Fault.PARTIAL})
"""Faults of pages, which do not apply to other requests."""

REFUSALS = {
    Fault.THROTTLED: (429, "too many requests"),
    Fault.THROTTLED_UNTIL: (429, "too many requests"),
    Fault.UNAVAILABLE: (503, "under maintenance"),
    Fault.ERROR: (500, "internal error"),
    Fault.UNAUTHORIZED: (401, "the credentials are not valid"),
    Fault.FORBIDDEN: (403, "a permission is missing"),
}
"""Faults that an API itself can report, with the status and the reason."""

_HTML = b"<!doctype html><title>Sign in</title><form><input name=password></form>"
_STATUSES = {
    **{fault: status for fault, (status, _) in REFUSALS.items()},
    Fault.BAD_GATEWAY: 502,
    Fault.LOGIN_PAGE: 200,
    Fault.EMPTY: 200,
    Fault.UNEXPECTED: 200,
}
_HTML_FAULTS = (Fault.BAD_GATEWAY, Fault.LOGIN_PAGE)


async def spoil(
    fault: Fault, request: web.Request, answer: Answer, now: datetime, delay: timedelta
) -> web.StreamResponse:
    """Return the faulty response to a request; `delay` is the value of Retry-After."""
    match fault:
        case Fault.TRUNCATED:
            right = await answer()
            return web.Response(body=_half(right), content_type="application/json")
        case Fault.CUT:
            return await _cut(request, await answer(), now)
        case Fault.RESTARTED | Fault.LOST:
            if fault is Fault.LOST:
                await answer()
            return _hang_up(request)
        case Fault.SLOW:
            await asyncio.Event().wait()
        case Fault.REVOKED:
            return await answer()
    headers = retry_after_header(fault, now, delay)
    if fault is Fault.EMPTY:
        return web.Response(status=200)
    body, kind = (_HTML, "text/html") if fault in _HTML_FAULTS else (b"{}", "application/json")
    return web.Response(status=_STATUSES[fault], body=body, content_type=kind, headers=headers)


def retry_after_header(fault: Fault, now: datetime, delay: timedelta) -> dict[str, str]:
    """Return the Retry-After header of a fault, if it has one."""
    match fault:
        case Fault.THROTTLED | Fault.UNAVAILABLE:
            return {"Retry-After": str(int(delay.total_seconds()))}
        case Fault.THROTTLED_UNTIL:
            return {"Retry-After": format_datetime(now + delay, usegmt=True)}
    return {}


def _half(right: web.Response) -> bytes:
    body = right.body if isinstance(right.body, bytes) else b""
    return body[: max(1, len(body) // 2)] or b"{"


async def _cut(request: web.Request, right: web.Response, now: datetime) -> web.StreamResponse:
    half = _half(right)
    response = web.StreamResponse(headers={"Date": format_datetime(now, usegmt=True)})
    response.content_length = 2 * len(half) + 1
    await response.prepare(request)
    await response.write(half)
    _hang_up(request)
    return response


def _hang_up(request: web.Request) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.close()
    return web.Response()
