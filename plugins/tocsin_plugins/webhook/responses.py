"""Meaning of webhook responses, by Standard Webhooks 1.0.0 and the receiver's contract."""

from __future__ import annotations

import json
from datetime import datetime
from functools import reduce
from http import HTTPStatus
from typing import Any

from tocsin import (
    AnswerCondition,
    AnswerRules,
    HttpResponse,
    Receipt,
    Refused,
    TryLater,
    retry_after,
)

_OVERLOADED = (
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.GATEWAY_TIMEOUT,
)
_NO_RULES = AnswerRules()
_NOTHING = object()


def read_receipt(response: HttpResponse, now: datetime, rules: AnswerRules = _NO_RULES) -> Receipt:
    """Return the receipt in a 2xx response, or in one that reports a known event.

    Raises `Refused` for 410 Gone, for a header `webhook-delivery` that rules out retries, and for
    responses that the rules call permanent; `TryLater` for every other response, including
    redirects and a 2xx that does not say what the rules require.
    """
    said = _parse_body(response.body)
    if rules.known is not None and _matches_rule(rules.known, said):
        return _build_receipt(response, rules.known.pointer, said)
    if not HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES:
        raise _build_refusal(response, rules) or _build_retry(response, now)
    for saying in rules.success:
        if not _matches_rule(saying, said):
            raise TryLater(
                f"the receiver answered {response.status}, but {saying.pointer} does not say that "
                "it succeeded",
                status=response.status,
                response=response.body,
            )
    return _build_receipt(response, rules.remote_id, said)


def _build_receipt(response: HttpResponse, pointer: str | None, said: Any) -> Receipt:
    found = None if pointer is None else _resolve_pointer(pointer, said)
    remote_id = str(found) if isinstance(found, str | int) else None
    return Receipt(status=response.status, response=response.body, remote_id=remote_id)


def _parse_body(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _matches_rule(saying: AnswerCondition, said: Any) -> bool:
    found = _resolve_pointer(saying.pointer, said)
    if saying.equals is None:
        return found is not _NOTHING and found is not None
    return type(found) is type(saying.equals) and found == saying.equals


def _resolve_pointer(pointer: str, said: Any) -> Any:
    """Return the value at a JSON Pointer (RFC 6901)."""
    parts = (part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:])
    return reduce(_find_member, parts, said)


def _find_member(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return value.get(name, _NOTHING)
    if isinstance(value, list) and name.isdecimal() and int(name) < len(value):
        return value[int(name)]
    return _NOTHING


def _build_retry(response: HttpResponse, now: datetime) -> TryLater:
    return TryLater(
        f"the receiver answered {response.status}",
        after=retry_after(response.headers, now),
        throttled=response.status in _OVERLOADED,
        status=response.status,
        response=response.body,
    )


def _build_refusal(response: HttpResponse, rules: AnswerRules) -> Refused | None:
    """Return the refusal of a receiver that wants no retry; None if it does not refuse.

    The header is a proposal to the standard, https://github.com/standard-webhooks/standard-
    webhooks/pull/291.
    """
    wish = response.headers.get("webhook-delivery", "").strip().lower()
    if response.status == HTTPStatus.GONE or wish == "disable":
        unwanted, words = True, "wants no more deliveries"
    elif wish == "abort-message":
        unwanted, words = False, "does not want this event again"
    elif response.status in rules.permanent:
        unwanted, words = False, "would refuse a retry as well"
    else:
        return None
    return Refused(
        f"the receiver answered {response.status} and {words}",
        unwanted=unwanted,
        status=response.status,
        response=response.body,
    )
