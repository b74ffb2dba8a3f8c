"""What a receiver's answer means: the status rules of Standard Webhooks 1.0.0."""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus

from tocsin import HttpResponse, Receipt, Refused, TryLater, retry_after

_OVERLOADED = (
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.GATEWAY_TIMEOUT,
)


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
