"""ServiceNow responses and refusal reasons."""

from __future__ import annotations

from http import HTTPStatus

from tocsin import Broken, Json, Misconfigured, Refused, parse_json

_SHOWN = 1_000
_RULES = ("data policy", "business rule")
_ASLEEP = (
    "hibernating developer instances respond like this: sign in at "
    "https://developer.servicenow.com to wake the instance"
)


def explain_refusal(refused: Refused) -> Refused:
    """Return the error with ServiceNow's reason instead of the start of the response.

    Data policies and business rules also cause 403, which does not mean wrong credentials.
    """
    reason = _reason_in_body(refused.response)[:_SHOWN]
    if not reason:
        return refused
    kind = type(refused)
    if refused.status == HTTPStatus.FORBIDDEN and any(rule in reason.lower() for rule in _RULES):
        kind = Misconfigured
    message = f"{str(refused).partition(': ')[0]}: {reason}"
    return kind(message, status=refused.status, response=refused.response)


def expect_awake(broken: Broken) -> Broken:
    """Return the error, with advice if the response is a web page."""
    return Broken(f"{broken}; {_ASLEEP}") if "text/html" in str(broken) else broken


def expect_complete(answer: Json) -> Json:
    """Return a complete response; raises `Broken` if it contains an error despite its status.

    This happens when ServiceNow cancels a transaction while it is responding.
    """
    reason = _reason_in_json(answer)
    if reason:
        raise Broken(f"incomplete response from ServiceNow: {reason[:_SHOWN]}")
    return answer


def _reason_in_body(body: bytes) -> str:
    try:
        return _reason_in_json(parse_json(body))
    except ValueError:
        return ""


def _reason_in_json(content: Json) -> str:
    match content:
        case {"error": {"message": message, **rest}}:
            detail = rest.get("detail")
            return f"{message}: {detail}" if detail else str(message)
        case {"error": str(message)}:
            return message
    return ""
