"""What a receiver's answer means: the status rules of Standard Webhooks 1.0.0."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus

from tocsin import HttpResponse, Receipt, Refused, TryLater

_OVERLOADED = (
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.GATEWAY_TIMEOUT,
)
_SECONDS = re.compile(r"[0-9]+(\.[0-9]+)?")
_LONGEST_DELAY = timedelta(hours=24)


def receipt(response: HttpResponse, now: datetime) -> Receipt:
    """Return the receipt that a 2xx answer is.

    Raises `Refused` for 410 Gone and where the header `webhook-delivery` says that it is no use
    to come again, and `TryLater` for every other answer, redirects included.
    """
    if HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES:
        return Receipt(status=response.status, response=response.body)
    raise _refusal(response) or TryLater(
        f"the receiver answered {response.status}",
        after=retry_after(response.headers, now),
        throttled=response.status in _OVERLOADED,
        status=response.status,
        response=response.body,
    )


def _refusal(response: HttpResponse) -> Refused | None:
    """Return what a receiver that wants no retry has said; None if it has not.

    The header is a proposal to the standard, https://github.com/standard-webhooks/standard-webhooks/pull/291.
    """
    wish = response.headers.get("webhook-delivery", "").strip().lower()
    if response.status == HTTPStatus.GONE or wish == "disable":
        unwanted, words = True, "wants no more deliveries"
    elif wish == "abort-message":
        unwanted, words = False, "does not want this event again"
    else:
        return None
    return Refused(
        f"the receiver answered {response.status} and {words}",
        unwanted=unwanted,
        status=response.status,
        response=response.body,
    )


def retry_after(headers: Mapping[str, str], now: datetime) -> timedelta | None:
    """Return how long the receiver asks to wait, 24 hours at most; None if it does not say.

    RFC 9110 section 10.2.3: a number of seconds, or a date in any of the three forms of section
    5.6.7. Fractions of a second, which some send, count. A date that has passed says nothing.
    """
    value = headers.get("Retry-After", "").strip()
    try:
        delay = _seconds(value) if _SECONDS.fullmatch(value) else _date(value) - now
    except (ValueError, OverflowError):  # no date, or one that no calendar holds
        return None
    return min(delay, _LONGEST_DELAY) if delay > timedelta(0) else None


def _seconds(value: str) -> timedelta:
    return timedelta(seconds=min(float(value), _LONGEST_DELAY.total_seconds()))


def _date(value: str) -> datetime:
    date = parsedate_to_datetime(value)
    return date if date.tzinfo else date.replace(tzinfo=UTC)
