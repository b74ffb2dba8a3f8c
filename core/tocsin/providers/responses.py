"""Status, headers and errors of HTTP API responses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus

from tocsin.errors import Broken, CredentialsRefused, PluginFailure, Refused, TryLater
from tocsin.hookspecs import HttpResponse

_LONGEST_DELAY = timedelta(hours=24)
_SECONDS = re.compile(r"[0-9]+(\.[0-9]+)?")
_SHOWN = 200
_KEPT = 16_384
_TRANSIENT = frozenset(
    {
        HTTPStatus.REQUEST_TIMEOUT,
        HTTPStatus.TOO_EARLY,
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
    }
)
_THROTTLING = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)


def retry_after(headers: Mapping[str, str], now: datetime) -> timedelta | None:
    """Return the delay in the header `Retry-After`, 24 hours at most; None without one.

    RFC 9110 section 10.2.3: a number of seconds, or a date in any of the three forms of section
    5.6.7. Fractions of a second are accepted, since some servers send them. A past date is ignored.
    """
    value = headers.get("Retry-After", "").strip()
    try:
        delay = _parse_seconds(value) if _SECONDS.fullmatch(value) else _parse_date(value) - now
    except (ValueError, OverflowError):  # no date, or one outside the calendar
        return None
    return min(delay, _LONGEST_DELAY) if delay > timedelta(0) else None


def parse_server_time(headers: Mapping[str, str]) -> datetime | None:
    """Return the server time in the header `Date`, to the second; None without one."""
    try:
        return _parse_date(headers.get("Date", ""))
    except (ValueError, OverflowError):
        return None


def classify_response(response: HttpResponse, what: str, now: datetime) -> PluginFailure | None:
    """Return the error for a response to `what`, None for a complete success."""
    status, body = response.status, response.body[:_KEPT]
    words = f"{what} answered {status}{_format_excerpt(body[:_SHOWN])}"
    if status == HTTPStatus.PARTIAL_CONTENT:
        return TryLater(f"{what} answered in part only{_format_warning(response)}", status=status)
    if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        return None
    if status in _TRANSIENT:
        # A date follows the server's clock, which may differ from ours
        after = retry_after(response.headers, parse_server_time(response.headers) or now)
        throttled = status in _THROTTLING
        return TryLater(words, after=after, throttled=throttled, status=status, response=body)
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return CredentialsRefused(words, status=status, response=body)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return Broken(words)
    return Refused(f"{words}{_format_location(response)}", status=status, response=body)


def _format_excerpt(body: bytes) -> str:
    text = " ".join(body.decode("utf-8", "replace").split())
    return f": {text}" if text else ""


def _format_warning(response: HttpResponse) -> str:
    return f": {response.headers.get('Warning', '')}"[:_SHOWN]


def _format_location(response: HttpResponse) -> str:
    location = response.headers.get("Location")
    return f"; it redirects to {location[:_SHOWN]}" if location else ""


def _parse_seconds(value: str) -> timedelta:
    return timedelta(seconds=min(float(value), _LONGEST_DELAY.total_seconds()))


def _parse_date(value: str) -> datetime:
    date = parsedate_to_datetime(value)
    return date if date.tzinfo else date.replace(tzinfo=UTC)
